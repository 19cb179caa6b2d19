"""Plan a data set: list the objects of a URL, find their format and columns, and split them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pyarrow as pa

from pipeprof import formats, manifest
from pipeprof.errors import FormatError, NothingFound, PipeprofError
from pipeprof.formats.base import SMALLEST, Decoder, Format, ReadOptions, Split
from pipeprof.formats.images.format import folder_numbers
from pipeprof.formats.readers import installed_version, read_by, split_reader
from pipeprof.formats.types import format_type, parse_type
from pipeprof.loaders.bad_data import SkipCounter
from pipeprof.loaders.dataset.data_objects import DataObjects, data_objects, with_index
from pipeprof.loaders.dataset.object_plans import Form, ObjectPlanner, Planned, several
from pipeprof.model import DataSource
from pipeprof.storage import ObjectInfo, Store, open_store
from pipeprof.storage.urls import join, redact

_SNIFFED_BYTES = 4096
_MOST_NAMED = 5
"""Most columns that a warning names."""
ObjectSplit = tuple[ObjectInfo, Split]
"""A split, and the object that it is a part of."""


class ColumnsLeftOut(UserWarning):
    """Columns without a tensor form are not read."""


@dataclass(frozen=True)
class DatasetPlan:
    """All that a worker needs to read its share of a data set."""

    store: Store
    format_name: str
    schema: pa.Schema
    splits: tuple[ObjectSplit, ...]
    source: DataSource
    notes: tuple[str, ...] = ()
    """What of the data is not read, and why; a sentence each."""

    @property
    def decoder(self) -> Decoder:
        """The format, or the reader that decodes its objects."""
        return read_by(self.source.reader, formats.get(self.format_name))


def plan_dataset(
    url: str,
    columns: Sequence[str] | None,
    types: Mapping[str, str] | None,
    options: ReadOptions,
    storage_options: Mapping[str, Any] | None,
    skips: SkipCounter | None = None,
    form: Form = "tensor",
    smallest: bool = False,
) -> DatasetPlan:
    """List ``url``, find its format, and split each object.

    Columns that do not have ``form`` are left out, or raise where they are among ``columns``. The
    splits are the ``smallest`` parts that can be read alone, where their rows are known.

    ``url`` may begin with the name of a reader: ``polars::data/parquet``.

    ``types`` maps columns to types such as ``"list<int64>"``, in place of inferred types and of
    those that a manifest of ``pipeprof generate`` declares. ``skips`` counts what is skipped, or
    raises. Raises `StorageError`, `FormatError`.
    """
    skips = skips or SkipCounter("fail")
    reader, url = split_reader(url)
    store = open_store(url, storage_options, options)
    found = data_objects(store, url)
    items = found.items
    chosen = _one_format(store, items, redact(url), skips)
    if smallest and not chosen.cut_anywhere:
        options = replace(options, split_bytes=SMALLEST)
    arrow_types = {
        name: parse_type(text) for name, text in {**_declared(store, url), **(types or {})}.items()
    }
    planner = ObjectPlanner(read_by(reader, chosen), store, options, skips)
    schema, plans = planner.plan_all(items, columns, arrow_types, form, chosen.optional_columns)
    if schema is None:
        raise NothingFound(f"{redact(url)} holds no rows, and no file says what the columns are.")
    if reader is None and found.indexes:
        plans = list(several(store, partial(_with_index, store, found, options), plans))
    if any(plan.by_folder for _, plan in plans):
        plans = _with_folders(plans)
    left_out = next((plan.left_out for _, plan in plans if plan.left_out), ())
    if found.table is not None:
        try:
            found.table.check_columns([*schema.names, *(field.name for field in left_out)])
        except FormatError as error:
            raise FormatError(f"{redact(url)}: {error}") from None
    source = DataSource(
        redact(url), chosen.name, len(items), sum(item.size for item in items),
        columns_left_out=tuple(field.name for field in left_out), reader=reader,
        reader_version=installed_version(reader) if reader else None,
    )  # fmt: skip
    splits = tuple((item, split) for item, plan in plans for split in plan.splits)
    notes = (f"{redact(url)}: {_without_tensor(left_out)}, left out.",) if left_out else ()
    return DatasetPlan(store, chosen.name, schema, splits, source, notes)


def _one_format(store: Store, items: Sequence[ObjectInfo], url: str, skips: SkipCounter) -> Format:
    """Return the format of all objects, by the content of one object of each suffix."""
    found: dict[str, tuple[Format, ObjectInfo]] = {}
    known_suffixes: set[str] = set()
    first_error: FormatError | None = None
    for item in items:
        suffix = item.url.rpartition("/")[2].partition(".")[2]
        if suffix in known_suffixes:
            continue
        size = min(item.size, _SNIFFED_BYTES)
        head, tail = store.read(item, [(0, size), (item.size - size, size)])
        try:
            chosen = formats.detect(item.url, bytes(head), bytes(tail))
        except FormatError as error:
            skips.skip_rows(item.url, error, 0)  # `ObjectPlanner` counts the object
            first_error = first_error or error
            continue
        known_suffixes.add(suffix)
        found[chosen.name] = (chosen, item)
    if first_error and not found:
        raise first_error
    if len(found) > 1:
        examples = ", ".join(f"{item.url} is {name}" for name, (_, item) in sorted(found.items()))
        raise FormatError(
            f"{url} mixes formats ({examples}); point at one of them with a glob such as *.parquet."
        )
    only: Format = next(iter(found.values()))[0]
    return only


def _with_index(
    store: Store, found: DataObjects, options: ReadOptions, planned: Planned
) -> Planned:
    """Cut an object by its index, where it has one. Raises `FormatError`."""
    item, plan = planned
    index = found.indexes.get(item.url)
    if index is None or not plan.splits:
        return planned
    return item, with_index(store, item, plan, index, options.split_bytes)


def _with_folders(plans: Sequence[Planned]) -> list[Planned]:
    """Write into each split the number of its object's folder."""
    numbers = folder_numbers([item.path for item, _ in plans])
    return [
        (item, replace(plan, splits=tuple(replace(each, folder=number) for each in plan.splits)))
        for (item, plan), number in zip(plans, numbers, strict=True)
    ]


def _without_tensor(fields: Sequence[pa.Field]) -> str:
    """Name columns that have no tensor form."""
    names = [f"{field.name!r} ({format_type(field.type)})" for field in fields[:_MOST_NAMED]]
    if len(fields) > _MOST_NAMED:
        names.append(f"{len(fields) - _MOST_NAMED} more")
    several = len(fields) > 1
    return (f"column{'s' if several else ''} {', '.join(names)} {'have' if several else 'has'} "
            "no tensor form")  # fmt: skip


def _declared(store: Store, url: str) -> Mapping[str, str]:
    """Return the column types in the manifest of a generated data set; none elsewhere."""
    try:
        item = store.find(join(url, manifest.MANIFEST))[0]
        data = store.read(item, [(0, item.size)])[0]
        return manifest.loads(bytes(data)).columns
    except PipeprofError:
        return {}
