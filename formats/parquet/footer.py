"""Read the footer of a Parquet file: its columns, and where each lies in each row group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property, lru_cache
from itertools import pairwise

import pyarrow as pa
import pyarrow.parquet as pq

from pipeprof.errors import CorruptData
from pipeprof.formats.arrow_errors import reading
from pipeprof.formats.base import ByteRange
from pipeprof.formats.sparse_file import OutsideRanges, SparseFile

MAGIC = b"PAR1"
ENCRYPTED = b"PARE"
_CACHED_FOOTERS = 4
"""Footers that are kept. Each split of a file needs the footer, which is parsed once."""


class Footer:
    """A parsed footer, as `parse_footer` returns it. All methods raise `CorruptData`."""

    def __init__(self, data: bytes, start: int) -> None:
        self._start, self._end = start, start + len(data)
        with reading("the footer"):
            self.metadata: pq.FileMetaData = pq.read_metadata(pa.BufferReader(data))
            self.schema: pa.Schema = self.metadata.schema.to_arrow_schema()
            """As Arrow reads it."""
            self.created_by: str = self.metadata.created_by or ""

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        names: list[str] = self.schema.names
        return names

    @cached_property
    def rows(self) -> list[int]:
        """Number of rows of each row group."""
        with reading("the footer"):
            groups = range(self.metadata.num_row_groups)
            return [self.metadata.row_group(group).num_rows for group in groups]

    @cached_property
    def leaves(self) -> Mapping[str, Sequence[int]]:
        """The stored columns that Arrow reads for each name; every part of a path is such a
        name."""
        stored = self.metadata.schema
        leaves: dict[str, list[int]] = {}
        for index in range(self.metadata.num_columns):
            parts = stored.column(index).path.split(".")
            for depth in range(1, len(parts) + 1):
                leaves.setdefault(".".join(parts[:depth]), []).append(index)
        return leaves

    def leaves_of(self, names: Sequence[str]) -> list[int]:
        """Return the stored columns of these names, in the order of the file."""
        return sorted({leaf for name in names for leaf in self.leaves[name]})

    def ranges(self, names: Sequence[str]) -> list[list[ByteRange]]:
        """Return the byte ranges of these columns for each row group; none for a group without
        rows."""
        leaves = self.leaves_of(names)
        self._check(leaves)
        with reading("the footer"):
            return [
                self._column_ranges(group, leaves) if rows else []
                for group, rows in enumerate(self.rows)
            ]

    def _check(self, leaves: Sequence[int]) -> None:
        """Let Arrow check the metadata of every column chunk, by a read that ends before its first
        byte.

        `RowGroupMetaData.column` aborts the whole process on a chunk that contradicts the schema,
        but reading raises. With ``pre_buffer`` a read checks all chunks before it fetches any.
        """
        with reading("the footer"):
            empty = pa.PythonFile(SparseFile(self._end, (), ()), mode="r")
            reader = pq.ParquetReader()
            reader.open(empty, metadata=self.metadata, pre_buffer=True)
            with suppress(OutsideRanges):
                groups = range(self.metadata.num_row_groups)
                reader.read_row_groups(list(groups), column_indices=leaves, use_threads=False)

    def _column_ranges(self, group: int, leaves: Sequence[int]) -> list[ByteRange]:
        """Return the byte ranges of columns that `_check` has passed."""
        row_group, ranges = self.metadata.row_group(group), []
        for leaf in leaves:
            column = row_group.column(leaf)
            start, length = column.data_page_offset, column.total_compressed_size
            if column.has_dictionary_page and column.dictionary_page_offset:
                start = min(start, column.dictionary_page_offset)
            if start < len(MAGIC) or length < 0 or start + length > self._start:
                raise CorruptData(
                    f"the footer is damaged: it places column {column.path_in_schema!r} of row "
                    f"group {group} at byte {start}, {length} bytes long, where no column can be."
                )
            if column.num_values < row_group.num_rows:  # Arrow takes memory for what is lacking
                raise CorruptData(
                    f"the footer is damaged: row group {group} has {row_group.num_rows} rows, and "
                    f"its column {column.path_in_schema!r} {column.num_values} values."
                )
            ranges.append((start, length))
        return ranges


@lru_cache(_CACHED_FOOTERS)
def parse_footer(data: bytes, start: int) -> Footer:
    """Parse the footer that begins at byte ``start``. ``data`` includes its length and magic."""
    return Footer(data, start)


def footer_length(tail: bytes, size: int) -> int:
    """Bytes of the footer, its length and magic included. Raises `CorruptData`.

    Args:
        tail: The last bytes of the file.
        size: Bytes of the file.
    """
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


def check_apart(chunks: Sequence[ByteRange]) -> None:
    """Raise `CorruptData` when two of these column chunks, which are in order, share bytes."""
    for (start, length), (following, _) in pairwise(chunks):
        if start + length > following:
            raise CorruptData(f"the footer is damaged: it places two columns at byte {following}.")
