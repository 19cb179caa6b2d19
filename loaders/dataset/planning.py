"""From a URL to what can be read: objects, their one format, columns and splits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from pipeprof import formats, manifest
from pipeprof.errors import FormatError, NothingFound, PipeprofError, SchemaMismatch
from pipeprof.formats.base import Fault, FilePlan, Format, ReadOptions, Split, drive_plan
from pipeprof.formats.types import parse_type
from pipeprof.loaders.bad_data import SkipCounter
from pipeprof.model import DataSource
from pipeprof.storage import ObjectInfo, Store, open_store
from pipeprof.storage.urls import join, redact

_SNIFFED_BYTES = 4096


@dataclass(frozen=True)
class DatasetPlan:
    """Everything a worker needs to read its share."""

    store: Store
    format_name: str
    schema: pa.Schema
    splits: tuple[tuple[ObjectInfo, Split], ...]
    source: DataSource


def plan_dataset(
    url: str,
    columns: Sequence[str] | None,
    types: Mapping[str, str] | None,
    options: ReadOptions,
    storage_options: Mapping[str, Any] | None,
    skips: SkipCounter | None = None,
) -> DatasetPlan:
    """List ``url``, find its format, and cut each object.

    ``types`` (column → e.g. ``"list<int64>"``) overrides what would be inferred; a data set that
    ``pipeprof generate`` wrote says its types itself. ``skips`` hears of what cannot be read, and
    raises unless told otherwise.
    Raises `StorageError`, `FormatError`.
    """
    skips = skips or SkipCounter("fail")
    store = open_store(url, storage_options, options)
    items = store.find(url)
    chosen = _one_format(store, items, redact(url), skips)
    arrow_types = {
        name: parse_type(text) for name, text in {**_declared(store, url), **(types or {})}.items()
    }
    schema, plans = _plan_all(chosen, store, items, columns, arrow_types, options, skips)
    if schema is None:
        raise NothingFound(
            f"{redact(url)} holds no rows, and nothing that says what its columns are."
        )
    source = DataSource(redact(url), chosen.name, len(items), sum(item.size for item in items))
    splits = tuple((item, split) for item, plan in plans for split in plan.splits)
    return DatasetPlan(store, chosen.name, schema, splits, source)


def explain(error: FormatError, item: ObjectInfo) -> FormatError:
    """A format knows no names: say which object it spoke of."""
    return type(error)(f"{item.url}: {error}")


def _plan(
    chosen: Format,
    store: Store,
    item: ObjectInfo,
    columns: Sequence[str] | None,
    types: Mapping[str, pa.DataType],
    options: ReadOptions,
    skips: SkipCounter,
) -> FilePlan:
    def on_fault(fault: Fault) -> None:
        if not skips.enabled:
            raise fault.error
        skips.skip_rows(item.url, explain(fault.error, item), fault.rows)

    try:
        return drive_plan(
            chosen.plan(item.size, columns, types, options),
            lambda offset, length: store.read(item, [(offset, length)])[0],
            on_fault,
        )
    except FormatError as error:
        raise explain(error, item) from None


def _one_format(store: Store, items: Sequence[ObjectInfo], url: str, skips: SkipCounter) -> Format:
    """By the content of one object of each suffix."""
    found: dict[str, tuple[Format, ObjectInfo]] = {}
    seen: set[str] = set()
    refused: FormatError | None = None
    for item in items:
        suffix = item.url.rpartition("/")[2].partition(".")[2]
        if suffix in seen:
            continue
        size = min(item.size, _SNIFFED_BYTES)
        head, tail = store.read(item, [(0, size), (item.size - size, size)])
        try:
            chosen = formats.detect(item.url, bytes(head), bytes(tail))
        except FormatError as error:
            skips.skip_rows(item.url, error, 0)  # its turn comes when all are planned
            refused = refused or error
            continue
        seen.add(suffix)
        found[chosen.name] = (chosen, item)
    if refused and not found:
        raise refused
    if len(found) > 1:
        examples = ", ".join(f"{item.url} is {name}" for name, (_, item) in sorted(found.items()))
        raise FormatError(
            f"{url} mixes formats ({examples}); point at one of them with a glob such as *.parquet."
        )
    only: Format = next(iter(found.values()))[0]
    return only


def _plan_all(
    chosen: Format,
    store: Store,
    items: Sequence[ObjectInfo],
    columns: Sequence[str] | None,
    types: Mapping[str, pa.DataType],
    options: ReadOptions,
    skips: SkipCounter,
) -> tuple[pa.Schema | None, list[tuple[ObjectInfo, FilePlan]]]:
    """The schema of the first object that has one; the others must have its columns, in any
    order, with the same types. Raises `FormatError` when no object can be read."""
    schema: pa.Schema | None = None
    plans: list[tuple[ObjectInfo, FilePlan]] = []
    first, refused = items[0], None
    for item in items:
        wanted = columns if schema is None else schema.names
        try:
            plan = _plan(chosen, store, item, wanted, types, options, skips)
            if schema is not None and plan.schema is not None and not plan.schema.equals(schema):
                raise SchemaMismatch(
                    f"{item.url} has other types than {first.url}: "
                    f"{_difference(plan.schema, schema)}. Read them apart, or give types=…"
                )
        except FormatError as error:
            skips.skip_object(item.url, error)
            refused = refused or error
            continue
        plans.append((item, plan))
        if schema is None:
            first, schema = item, plan.schema
    if refused and not plans:
        raise refused
    return schema, plans


def _difference(one: pa.Schema, other: pa.Schema) -> str:
    """Of two schemas with the same names."""
    name = next(name for name in one.names if one.field(name).type != other.field(name).type)
    return f"{name!r} is {one.field(name).type}, not {other.field(name).type}"


def _declared(store: Store, url: str) -> Mapping[str, str]:
    """Column types from the manifest of a generated data set; none elsewhere."""
    try:
        item = store.find(join(url, manifest.MANIFEST))[0]
        data = store.read(item, [(0, item.size)])[0]
        return manifest.loads(bytes(data)).columns
    except PipeprofError:
        return {}
