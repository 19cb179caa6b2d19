"""The footer of a Parquet file: what its columns are, and where each of each row group lies."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import pairwise

import pyarrow as pa
import pyarrow.parquet as pq

from pipeprof.errors import CorruptData
from pipeprof.formats.base import Range
from pipeprof.formats.parquet_chunks import table_of
from pipeprof.formats.parquet_columns import load
from pipeprof.formats.parquet_head import Plain, head_of, reading
from pipeprof.formats.parquet_pages import Chunk
from pipeprof.formats.sparse import OutsideRanges, SparseFile

MAGIC = b"PAR1"
ENCRYPTED = b"PARE"
_KEPT = 4
"""Footers: each split of a file has its own copy to be read."""


_TYPES = ("BOOLEAN", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY")
_CODECS = ("UNCOMPRESSED", "SNAPPY", "GZIP", "LZO", "BROTLI", "LZ4", "ZSTD", "LZ4_RAW")
"""Both in the order of their numbers."""


class Footer:
    """Made by `parsed`. Everything here raises `CorruptData`."""

    def __init__(self, data: bytes, end: int) -> None:
        self._data, self._end = data, end
        self._table = table_of(data, end)
        self.head = head_of(data if self._table is None else self._table.head(data))
        self.created_by = self.head.created_by
        self._columns: dict[str, Plain | None] = {}

    def is_of(self, data: bytes, end: int) -> bool:
        """Whether it was made of these: to compare them takes less than to hash them."""
        return end == self._end and data == self._data

    @property
    def leaves(self) -> Mapping[str, Sequence[int]]:
        """Which stored columns Arrow reads for a name."""
        return self.head.leaves

    @cached_property
    def metadata(self) -> pq.FileMetaData:
        """All of it, as Arrow reads it."""
        if self._table is None:
            return self.head.metadata
        with reading("the footer"):
            return pq.read_metadata(pa.BufferReader(self._data))

    @cached_property
    def rows(self) -> Sequence[int]:
        """Of each row group."""
        if self._table is not None:
            return self._table.rows
        every = range(self.metadata.num_row_groups)
        return [self.metadata.row_group(group).num_rows for group in every]

    def ranges(self, names: Sequence[str]) -> list[tuple[int, list[Range]]]:
        """The rows of each row group, and where these columns of it lie."""
        leaves = sorted({leaf for name in names for leaf in self.leaves[name]})
        if self._table is not None and self.is_plain(names):
            starts, lengths = self._table.starts, self._table.lengths
            return [
                (rows, [(starts[group][leaf], lengths[group][leaf]) for leaf in leaves if rows])
                for group, rows in enumerate(self.rows)
            ]
        self._check(names)
        with reading("the footer"):
            return [
                (rows, self._places(group, leaves) if rows else [])
                for group, rows in enumerate(self.rows)
            ]

    def load(self, names: Sequence[str]) -> None:
        """The kernels that read these columns."""
        load({column.stored for column in map(self._column, names) if column is not None})

    def is_plain(self, names: Sequence[str]) -> bool:
        """Whether `chunk` knows all these columns."""
        return all(self._column(name) is not None for name in names)

    def chunk(self, group: int, name: str) -> Chunk | None:
        """A column of a row group, if it is one of those that `parquet_columns` reads, and the
        footer speaks of it in words that Arrow cannot but agree with."""
        column, table = self._column(name), self._table
        if column is None or table is None:
            return None
        leaf = column.leaf
        return Chunk(
            column.dtype,
            column.stored,
            _CODECS[table.codecs[group][leaf]],
            column.deep,
            table.starts[group][leaf],
            table.lengths[group][leaf],
            self.rows[group],
            table.values[group][leaf],
        )

    def _column(self, name: str) -> Plain | None:
        if name not in self._columns:
            self._columns[name] = self._find(name)
        return self._columns[name]

    def _find(self, name: str) -> Plain | None:
        column, table = self.head.plain(name), self._table
        if column is None or table is None or len(table.types) != self.head.metadata.num_columns:
            return None
        leaf = column.leaf
        counted = zip(table.levels[leaf], (column.repeated + 1, column.deep + 1), strict=True)
        known = table.types[leaf] == _TYPES.index(column.stored)
        known &= column.repeated > 0 or table.flat[leaf]
        return column if known and all(n in (0, most) for n, most in counted) else None

    def _check(self, names: Sequence[str]) -> None:
        """Let Arrow look at every column chunk's metadata, by a read that ends before its first
        byte.

        `RowGroupMetaData.column` aborts the whole process on a chunk that contradicts the schema;
        reading raises. Buffering ahead, a read looks at all chunks before it fetches any.
        """
        with reading("the footer"):
            nothing = pa.PythonFile(SparseFile(self._end + len(self._data), (), ()), mode="r")
            reader = pq.ParquetFile(nothing, metadata=self.metadata, pre_buffer=True)
            with suppress(OutsideRanges):
                groups = range(self.metadata.num_row_groups)
                reader.read_row_groups(groups, columns=names, use_threads=False)

    def _places(self, group: int, leaves: Sequence[int]) -> list[Range]:
        """Of columns that Arrow has looked at."""
        row_group, places = self.metadata.row_group(group), []
        for leaf in leaves:
            column = row_group.column(leaf)
            start, length = column.data_page_offset, column.total_compressed_size
            if column.has_dictionary_page and column.dictionary_page_offset:
                start = min(start, column.dictionary_page_offset)
            if start < len(MAGIC) or length < 0 or start + length > self._end:
                raise CorruptData(
                    f"the footer is damaged: it places column {column.path_in_schema!r} of row "
                    f"group {group} at byte {start}, {length} bytes long, where no column can be."
                )
            if column.num_values < row_group.num_rows:  # Arrow takes memory for what is lacking
                raise CorruptData(
                    f"the footer is damaged: row group {group} has {row_group.num_rows} rows, and "
                    f"its column {column.path_in_schema!r} {column.num_values} values."
                )
            places.append((start, length))
        return places


_known: deque[Footer] = deque(maxlen=_KEPT)


def parsed(data: bytes, end: int) -> Footer:
    """The footer of these bytes, its length and magic included, which begins at byte ``end``."""
    footer = Footer(data, end)
    _known.append(footer)
    return footer


def known(data: bytes, end: int) -> Footer:
    """The same, parsed once in this process, or in the one that it was forked from."""
    same = (footer for footer in tuple(_known) if footer.is_of(data, end))
    return next(same, None) or parsed(data, end)


def footer_bytes(tail: bytes, size: int) -> int:
    """Length of the footer with its length and magic. Raises `CorruptData`."""
    if tail.endswith(ENCRYPTED):
        raise CorruptData("its footer is encrypted, which is not read.")
    if not tail.endswith(MAGIC):
        raise CorruptData(
            f"it does not end with {MAGIC.decode()}: truncated, still being written, or not "
            "Parquet."
        )
    length = int.from_bytes(tail[-8:-4], "little") + 8
    if length + len(MAGIC) > size:
        raise CorruptData(
            f"its footer says it is {length - 8} bytes long, more than the {size} bytes of the "
            "file: damaged."
        )
    return length


def check_apart(chunks: Sequence[Range]) -> None:
    """Raises `CorruptData` when two column chunks share bytes."""
    for (start, length), (following, _) in pairwise(chunks):
        if start + length > following:
            raise CorruptData(f"the footer is damaged: it places two columns at byte {following}.")
