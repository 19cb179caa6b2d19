"""Copies of a sample: planned, written in one format each, and removed again."""

from __future__ import annotations

import logging
import os
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from pipeprof import formats, manifest
from pipeprof.bench_data.generate import JOURNAL
from pipeprof.formats.base import choose_compression
from pipeprof.formats.types import format_type
from pipeprof.log import suppress_and_log
from pipeprof.manifest import MANIFEST, Manifest
from pipeprof.model import ConversionSpec, Copy
from pipeprof.storage.urls import filesystem, is_local, join, local_path
from pipeprof.storage.write import object_sizes, open_object, remove_object
from pipeprof.sweep.convert.copy_writer import CopyWriter, UnwritableRows
from pipeprof.sweep.plan import LOCAL
from pipeprof.units import format_binary

_log = logging.getLogger(__name__)


def plan_copies(spec: ConversionSpec, roots: Mapping[str, str]) -> tuple[Copy, ...]:
    """One for each format, storage and layout. ``roots``: storage → the folder that takes its
    copies. Raises `UsageError` for a format or compression that there is not."""
    copies: dict[str, Copy] = {}
    for storage in dict.fromkeys(spec.storages):
        for asked in dict.fromkeys(spec.formats):
            for layout in _layouts(spec, asked):
                url = join(roots[storage], _folder_name(layout))
                copies.setdefault(url, replace(layout, url=url, storage=storage))
    return tuple(copies.values())


def parse_format(asked: str) -> tuple[str, str]:
    """Format and compression of ``"parquet:zstd"``, ``"csv"``. Raises `UsageError`."""
    name, colon, compression = asked.partition(":")
    chosen = formats.get(name)
    return name, choose_compression(name, chosen.compressions, compression if colon else None)


def _layouts(spec: ConversionSpec, asked: str) -> Iterator[Copy]:
    name, compression = parse_format(asked)
    groups: Sequence[int | None] = spec.row_group_bytes if name == "parquet" else ()
    for group in groups or (None,):
        for shard in spec.shard_bytes or (None,):
            words = [asked]
            if group is not None:
                words.append(f"{format_binary(group)} groups")
            if shard is not None:
                words.append(f"{format_binary(shard)} files")
            yield Copy(
                url="",
                name=", ".join(words),
                storage="",
                format=name,
                compression=compression,
                row_group_bytes=group,
                shard_bytes=shard,
            )


def _folder_name(copy: Copy) -> str:
    words = [copy.format, copy.compression]
    if copy.row_group_bytes:
        words.append(f"groups-{copy.row_group_bytes}")
    if copy.shard_bytes:
        words.append(f"files-{copy.shard_bytes}")
    return "-".join(words)


def new_root(storage: str, beside: Path) -> str:
    """A folder that nothing else uses, for the copies on ``storage``."""
    if storage == LOCAL:
        return f"{os.fspath(beside)}-data"
    return join(storage, f"pipeprof-{beside.name}-{secrets.token_hex(4)}")


def claim(
    copy: Copy,
    url: str,
    schema: pa.Schema,
    expected_bytes: int,
    options: Mapping[str, Any] | None = None,
) -> None:
    """Write into the copy's folder what it is to become: from now on it is to be removed.

    Tells a storage that cannot be written to before the data is read. Raises `OutputError`, and
    leaves nothing then.
    """
    try:
        for name in object_sizes(url, options):  # of a sweep that was killed
            remove_object(join(url, name), options)
        plan = _plan(copy, schema, expected_bytes)
        _write(join(url, JOURNAL), manifest.dumps(plan), options)
    except BaseException:
        for folder in (url, url.rpartition("/")[0]):
            remove_folder(folder, options)
        raise


def write_copy(
    copy: Copy,
    url: str,
    rows: Iterable[pa.RecordBatch],
    schema: pa.Schema,
    expected_bytes: int,
    most_workers: int,
    options: Mapping[str, Any] | None = None,
) -> Copy:
    """Write ``rows`` to ``url``, which is the copy's with credentials, and say what it came to.

    What the format cannot hold is told in `Copy.skipped`, and nothing is left of that copy then.
    Raises `OutputError`, and what reading the rows raises.
    """
    try:
        writer = CopyWriter(copy, url, schema, expected_bytes, most_workers, options)
        files = writer.write(rows)
    except UnwritableRows as refused:
        remove_copy(url, options)
        return replace(copy, skipped=str(refused))
    plan = _plan(copy, schema, expected_bytes)
    whole = replace(plan, files=files, rows=sum(file.rows for file in files), shards=len(files))
    _write(join(url, MANIFEST), manifest.dumps(whole), options)
    remove_object(join(url, JOURNAL), options)
    return replace(
        copy, rows=whole.rows, objects=len(files), bytes=whole.bytes, write_s=writer.seconds
    )


def remove_copy(url: str, options: Mapping[str, Any] | None = None) -> None:
    """All that lies in the folder, and the folder. Raises `OutputError`."""
    for name in object_sizes(url, options):
        remove_object(join(url, name), options)
    remove_folder(url, options)


def remove_folder(url: str, options: Mapping[str, Any] | None = None) -> None:
    """When it is empty; object stores have none."""
    with suppress_and_log(_log, "the folder of a copy was not removed"):
        if is_local(url):
            os.rmdir(local_path(url))
        else:
            fs, path = filesystem(url, dict(options or {}))
            fs.rmdir(path)


def _write(url: str, data: bytes, options: Mapping[str, Any] | None) -> None:
    with open_object(url, options) as sink:
        sink.write(data)


def _plan(copy: Copy, schema: pa.Schema, expected_bytes: int) -> Manifest:
    return Manifest(
        kind="sample",
        format=copy.format,
        compression=copy.compression,
        seed=0,
        generator=0,
        size_bytes=expected_bytes,
        rows=0,
        shards=0,
        columns={column.name: format_type(column.type) for column in schema},
        files=(),
    )
