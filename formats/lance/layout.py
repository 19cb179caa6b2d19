"""Where the columns of a Lance file lie: its footer, tables of offsets, and descriptions of pages.

    pages of data | global buffers | a description of each column | table of these |
    table of the global buffers | footer

The first global buffer describes the schema. See lance.org/format/file.
"""

from __future__ import annotations

import itertools
import struct
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from pipeprof.errors import CorruptData
from pipeprof.formats.base import ByteRange
from pipeprof.formats.lance.messages import Column, FileDescriptor, parse
from pipeprof.formats.lance.schema import read_schema

MAGIC = b"LANC"
_FOOTER = struct.Struct("<3Q2I2H4s")
FOOTER_BYTES = _FOOTER.size
_ENTRY = struct.Struct("<2Q")
_FLAT_SINCE = (2, 1)
"""From this version on, a list is one column with its values."""
_VERSION_2_0 = (0, 3)
"""What a file of version 2.0 calls itself."""


@dataclass(frozen=True)
class FileEnd:
    """The end of a file."""

    columns_at: int
    """Where the descriptions of columns, and all that follows them, begin."""
    column_table: ByteRange
    buffer_table: ByteRange
    version: tuple[int, int]

    @property
    def begin(self) -> int:
        """The first byte of what describes the columns, up to the end of the file."""
        return min(self.columns_at, self.column_table[0], self.buffer_table[0])

    def schema_range(self, tail: bytes, size: int) -> ByteRange:
        """Return where the schema lies, from the last bytes of a file of ``size`` bytes. Raises
        `CorruptData`."""
        at = self.buffer_table[0] - (size - len(tail))
        offset, length = _ENTRY.unpack_from(tail, at)
        if offset + length > size:
            raise CorruptData("its schema lies outside the file; it is damaged.")
        return offset, length


class Pages:
    """The pages of a stored column, in the order of rows."""

    def __init__(self, firsts: Sequence[int], ranges: Sequence[tuple[ByteRange, ...]]) -> None:
        """Take the number of each page's first row in the file, and where the page lies."""
        self.firsts = firsts
        self._ranges = ranges
        nbytes = [sum(length for _, length in each) for each in ranges]
        self._bytes_before = [0, *itertools.accumulate(nbytes)]

    def ranges(self, first: int, end: int) -> Iterator[ByteRange]:
        """Yield the ranges of the pages that hold rows from ``first`` up to ``end``."""
        return itertools.chain.from_iterable(self._ranges[self._slice(first, end)])

    def nbytes(self, first: int, end: int) -> int:
        """Return the bytes of these pages."""
        pages = self._slice(first, end)
        nbytes: int = self._bytes_before[pages.stop] - self._bytes_before[pages.start]
        return nbytes

    def _slice(self, first: int, end: int) -> slice:
        begin = max(0, bisect_right(self.firsts, first) - 1)
        return slice(begin, max(begin, bisect_left(self.firsts, end)))


@dataclass(frozen=True)
class Layout:
    """The rows of a file, and where they lie."""

    schema: pa.Schema
    rows: int
    columns: tuple[Pages, ...]
    apart: bool
    """Whether there is one stored column for each of ``schema``, in its order."""

    def pages(self, names: Sequence[str]) -> list[Pages]:
        """Return the pages of columns. Where it is not known which stored columns are those of
        ``names``, return all."""
        if not self.apart:
            return list(self.columns)
        return [self.columns[self.schema.names.index(name)] for name in names]


def parse_footer(tail: bytes, size: int) -> FileEnd:
    """Return the footer of a file of ``size`` bytes, which ends with ``tail``. Raises
    `CorruptData`."""
    if len(tail) < FOOTER_BYTES or not tail.endswith(MAGIC):
        raise CorruptData("it does not end as a Lance file does: truncated?")
    fields = _FOOTER.unpack(tail[-FOOTER_BYTES:])
    columns_at, column_table, buffer_table, buffers, columns, major, minor, _ = fields
    if (major, minor) < _VERSION_2_0:
        raise CorruptData(
            f"it is of Lance's version {major}.{minor}, which is not read; write it again by a "
            "present version of pylance."
        )
    footer = FileEnd(
        columns_at,
        (column_table, columns * _ENTRY.size),
        (buffer_table, buffers * _ENTRY.size),
        (major, minor),
    )
    end = size - FOOTER_BYTES
    if not buffers or max(columns_at, sum(footer.column_table), sum(footer.buffer_table)) > end:
        raise CorruptData("its footer points outside the file; it is damaged.")
    return footer


def parse_layout(footer: FileEnd, schema_data: bytes, tail: bytes, size: int) -> Layout:
    """Return the layout of a file from its schema, and from its last bytes, which begin at
    `FileEnd.begin` or before. Raises `CorruptData`."""
    start = size - len(tail)

    def part(where: ByteRange) -> bytes:
        offset, length = where
        if offset < start or offset + length > size:
            raise CorruptData("a column's description lies elsewhere; the file is damaged.")
        return tail[offset - start : offset - start + length]

    described = parse(FileDescriptor, schema_data, "the schema")
    schema, rows = read_schema(described.schema.fields), described.length
    columns = []
    for entry in _ENTRY.iter_unpack(part(footer.column_table)):
        column = parse(Column, part(entry), "a column's description")
        columns.append(_pages(column, rows, size))
    apart = footer.version >= _FLAT_SINCE and len(columns) == len(schema)
    return Layout(schema, rows, tuple(columns), apart)


def _pages(column: Any, rows: int, size: int) -> Pages:
    """Return the pages of a column. What belongs to all of them counts to each."""
    shared = _ranges(column, size)
    firsts = [page.priority for page in column.pages]
    if firsts != sorted(firsts) or any(first > rows for first in firsts):
        raise CorruptData("its pages are not in the order of rows; the file is damaged.")
    return Pages(firsts, [(*shared, *_ranges(page, size)) for page in column.pages])


def _ranges(described: Any, size: int) -> tuple[ByteRange, ...]:
    """Return the non-empty buffers of a page, or those of a whole column."""
    offsets, sizes = described.buffer_offsets, described.buffer_sizes
    if len(offsets) != len(sizes):
        raise CorruptData("a page has buffers without a size; the file is damaged.")
    ranges = tuple(each for each in zip(offsets, sizes, strict=True) if each[1])
    if any(sum(each) > size for each in ranges):
        raise CorruptData("a page lies outside the file; it is damaged or truncated.")
    return ranges
