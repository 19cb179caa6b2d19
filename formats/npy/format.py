"""NumPy's files: `.npy` holds an array, and `.npz` several, each a column.

The first axis of an array is its rows, and what is behind it a list of fixed length. The fields of
a structured array are columns, and one without fields is called ``array``. In an `.npz` whose
arrays differ in their first axis, or have none, all of the file is one row: a sample. Pickled
objects are not read. A split of an `.npy` is a run of rows; an `.npz` is one split.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from zipfile import ZipFile

import pyarrow as pa

from pipeprof.errors import CorruptData, SchemaMismatch, UsageError
from pipeprof.formats.base import (
    Decoding,
    Encoder,
    FilePlan,
    Format,
    Planning,
    ReadOptions,
    Split,
    fetch,
    fetch_ranges,
)
from pipeprof.formats.npy import archive
from pipeprof.formats.npy.arrays import (
    MAGIC,
    ArrayHeader,
    as_columns,
    columns_of,
    header_end,
    read_header,
    values,
)
from pipeprof.formats.types import choose_columns

_LEAST_BYTES, _HEAD_BYTES = 12, 2**10
NAME = "array"
"""The column of an array that has no name and no fields."""


class Npy:
    """The format; see the module."""

    name = "npy"
    suffixes: tuple[str, ...] = (".npy", ".npz")
    compressions: tuple[str, ...] = ("none",)
    row_groups = False
    optional_columns = False
    cut_anywhere = False
    unforkable: str | None = None

    def sniff(self, head: bytes, tail: bytes) -> bool:
        if head.startswith(MAGIC):
            return True
        name = head[30 : 30 + int.from_bytes(head[26:28], "little")]  # of the first file in a zip
        return head.startswith(archive.MAGIC) and name.endswith(archive.SUFFIX.encode())

    def plan(
        self,
        size: int,
        columns: Sequence[str] | None,
        types: Mapping[str, pa.DataType],
        options: ReadOptions,
    ) -> Planning:
        """Plan the splits from the headers of the arrays."""
        if size < _LEAST_BYTES:
            raise CorruptData(f"it has {size} bytes, and no header: truncated, or damaged.")
        head = bytes((yield from fetch(0, min(size, _HEAD_BYTES))))
        if not head.startswith(MAGIC):
            found = yield from archive.read_archive(size, archive.headers)
            whole = _is_one_row(found)
            schema, left_out = choose_columns(_schema(found, whole), columns, types)
            rows = 1 if whole else max((each.rows for each in found.values()), default=0)
            return FilePlan(schema, (Split(0, size, rows),) if rows else (), left_out)
        end = header_end(head)
        if end > len(head):
            head += bytes((yield from fetch(len(head), min(end, size) - len(head))))
        header = read_header(io.BytesIO(head))
        if header.dtype.hasobject:
            raise SchemaMismatch(
                "it holds pickled objects, which are not read: to unpickle them runs what they say."
            )
        if header.begin + header.nbytes != size:
            raise CorruptData(
                f"its values end at byte {header.begin + header.nbytes}, and it has {size}: "
                "truncated, or damaged."
            )
        schema, left_out = choose_columns(_schema({NAME: header}, False), columns, types)
        return FilePlan(schema, tuple(_splits(header, options.split_bytes)), left_out)

    def decode(self, size: int, split: Split, schema: pa.Schema, options: ReadOptions) -> Decoding:
        if not split.ranges:
            yield (yield from archive.read_archive(size, lambda file: _rows(file, schema), True))
            return
        buffers = yield from fetch_ranges(split.ranges)
        header, rows = read_header(io.BytesIO(buffers[0])), split.end - split.start
        if len(buffers[1]) != rows * header.row_bytes:
            raise CorruptData("its shape changed while it was read.")
        found = as_columns(values(buffers[1], header, rows), NAME, schema, False)
        if not found.keys() >= set(schema.names):
            raise CorruptData("its columns changed while it was read.")
        yield pa.RecordBatch.from_arrays([found[name] for name in schema.names], schema=schema)

    def encoder(self, schema: pa.Schema, compression: str | None = None) -> Encoder:
        raise UsageError(
            "NumPy's files are read, but not written; choose another format, e.g. mds."
        )


def _splits(header: ArrayHeader, split_bytes: int) -> Iterator[Split]:
    """Yield runs of rows; each needs the header, too."""
    rows, width = header.rows, header.row_bytes
    step = max(1, split_bytes // max(1, width)) if split_bytes else max(1, rows)
    for first in range(0, rows, step):
        count = min(step, rows - first)
        place = header.begin + first * width, count * width
        yield Split(first, first + count, count, ((0, header.begin), place))


def _is_one_row(found: Mapping[str, ArrayHeader]) -> bool:
    """Return whether the arrays of a file have no common first axis."""
    return any(not each.shape for each in found.values()) or (
        len({each.rows for each in found.values()}) > 1
    )


def _schema(found: Mapping[str, ArrayHeader], whole: bool) -> pa.Schema:
    fields = [field for name, header in found.items() for field in columns_of(name, header, whole)]
    return pa.schema(fields)


def _rows(file: ZipFile, schema: pa.Schema) -> pa.RecordBatch:
    """Return all rows of an archive. Raises `SchemaMismatch`, and what `zipfile` raises."""
    found = archive.headers(file)
    whole, columns = _is_one_row(found), dict[str, pa.Array]()
    for name, header in found.items():
        names = [each for each, _ in columns_of(name, header, whole)]
        if not set(names) & set(schema.names):
            continue  # what is not asked for is not inflated
        array = values(archive.read_array(file, name, header), header, header.rows)
        columns |= as_columns(array.reshape(header.shape), name, schema, whole)
    return pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema)


FORMAT: Format = Npy()
