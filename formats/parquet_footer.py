"""The footer of a Parquet file: what its columns are, and where each of each row group lies."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from pipeprof.errors import CorruptData
from pipeprof.formats.base import Range
from pipeprof.formats.parquet_chunks import table_of
from pipeprof.formats.parquet_pages import Chunk, usual
from pipeprof.formats.sparse import OutsideRanges, SparseFile
from pipeprof.formats.types import first_line

MAGIC = b"PAR1"
ENCRYPTED = b"PARE"
_KEPT = 4
"""Footers: each split of a file has its own copy to be read."""


_TYPES = ("BOOLEAN", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY")
_CODECS = ("UNCOMPRESSED", "SNAPPY", "GZIP", "LZO", "BROTLI", "LZ4", "ZSTD", "LZ4_RAW")
"""Both in the order of their numbers."""


class _Flat(NamedTuple):
    """A column that `parquet_pages` reads."""

    leaf: int
    """Which stored one it is."""
    stored: str
    """Its physical type."""
    nullable: bool


class Footer:
    """Made by `parsed`. Everything here raises `CorruptData`."""

    def __init__(self, data: bytes, end: int) -> None:
        self._data, self._end = data, end
        self._table = table_of(data, end)
        head = data if self._table is None else self._table.without_row_groups(data)
        with reading("the footer"):
            self._head: pq.FileMetaData = pq.read_metadata(pa.BufferReader(head))
            self.schema: pa.Schema = self._head.schema.to_arrow_schema()
            """As Arrow reads it."""
        self._flat: dict[str, _Flat | None] = {}

    @cached_property
    def metadata(self) -> pq.FileMetaData:
        """All of it, as Arrow reads it."""
        if self._table is None:
            return self._head
        with reading("the footer"):
            return pq.read_metadata(pa.BufferReader(self._data))

    @property
    def created_by(self) -> str:
        with reading("the footer"):
            return self._head.created_by or ""

    @cached_property
    def rows(self) -> Sequence[int]:
        """Of each row group."""
        if self._table is not None:
            return self._table.rows
        every = range(self.metadata.num_row_groups)
        return [self.metadata.row_group(group).num_rows for group in every]

    @cached_property
    def leaves(self) -> Mapping[str, Sequence[int]]:
        """Which stored columns Arrow reads for a name: it takes every part of a path for one."""
        names, stored = self.schema.names, self._head.schema
        nested = self._head.num_columns != len(names) or any(
            dtype.num_fields for dtype in set(self.schema.types)
        )
        if not nested and "." not in "".join(names):
            return {name: [index] for index, name in enumerate(names)}
        leaves: dict[str, list[int]] = {}
        for index in range(self._head.num_columns):
            parts = stored.column(index).path.split(".")
            for depth in range(1, len(parts) + 1):
                leaves.setdefault(".".join(parts[:depth]), []).append(index)
        return leaves

    def ranges(self, names: Sequence[str]) -> list[tuple[int, list[Range]]]:
        """The rows of each row group, and where these columns of it lie."""
        leaves = sorted({leaf for name in names for leaf in self.leaves[name]})
        if self._table is not None and self.is_flat(names):
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

    def is_flat(self, names: Sequence[str]) -> bool:
        """Whether `chunk` knows all these columns."""
        return all(self._column(name) is not None for name in names)

    def chunk(self, group: int, name: str) -> Chunk | None:
        """A column of a row group, if it is one of those that `parquet_pages` reads, and the
        footer speaks of it in words that Arrow cannot but agree with."""
        column, table = self._column(name), self._table
        if column is None or table is None:
            return None
        leaf, stored, nullable = column
        return Chunk(
            self.schema.field(name).type,
            stored,
            _CODECS[table.codecs[group][leaf]],
            nullable,
            table.starts[group][leaf],
            table.lengths[group][leaf],
            self.rows[group],
        )

    def _column(self, name: str) -> _Flat | None:
        if name not in self._flat:
            self._flat[name] = self._find(name)
        return self._flat[name]

    def _find(self, name: str) -> _Flat | None:
        leaves, table = self.leaves.get(name, ()), self._table
        if table is None or len(leaves) != 1 or len(table.types) != self._head.num_columns:
            return None
        [leaf] = leaves
        column = self._head.schema.column(leaf)
        stored = column.physical_type
        flat = column.path == name and not column.max_repetition_level
        if not flat or not usual(self.schema.field(name).type, stored):
            return None
        deep = column.max_definition_level
        counted = zip(table.levels[leaf], (1, deep + 1), strict=True)
        if table.types[leaf] != _TYPES.index(stored) or any(
            n not in (0, most) for n, most in counted
        ):
            return None
        return _Flat(leaf, stored, deep == 1)

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


_known: OrderedDict[tuple[bytes, int], Footer] = OrderedDict()


def parsed(data: bytes, end: int) -> Footer:
    """The footer of these bytes, its length and magic included, which begins at byte ``end``."""
    footer = _known[data, end] = Footer(data, end)
    while len(_known) > _KEPT:
        _known.popitem(last=False)
    return footer


def known(data: bytes, end: int) -> Footer:
    """The same, parsed once in this process, or in the one that it was forked from."""
    return _known.get((data, end)) or parsed(data, end)


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Turn whatever Arrow says of damaged bytes into `CorruptData`."""
    try:
        yield
    except (
        pa.ArrowException,
        OSError,
        ValueError,
        OverflowError,
        IndexError,
        KeyError,
        MemoryError,
    ) as error:
        if "decrypt" in str(error):
            raise CorruptData(
                "columns are encrypted, which is not read; ask for others with columns=…"
            ) from None
        raise CorruptData(f"{what} is damaged ({first_line(error)}).") from None


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
