"""The row groups of a split of Parquet: by kernels what is common, by Arrow the rest."""

from __future__ import annotations

from collections.abc import Generator, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipeprof.errors import CorruptData
from pipeprof.formats.base import Buffer, Need, Range
from pipeprof.formats.parquet_columns import decoded
from pipeprof.formats.parquet_footer import Footer
from pipeprof.formats.parquet_head import reading
from pipeprof.formats.sparse import SparseFile
from pipeprof.formats.types import convert, is_list


class RowGroups:
    """Of one split, whose bytes come at once, or those of its only row group part by part."""

    def __init__(
        self, size: int, ranges: Sequence[Range], footer: Footer, schema: pa.Schema
    ) -> None:
        """``ranges``: all that will come."""
        self._size, self._ranges = size, tuple(ranges)
        self._footer, self._schema = footer, schema
        self._arrays: dict[str, pa.Array] = {}
        """Of the row group that is read now."""
        self._part: tuple[Sequence[Range], Sequence[Buffer]] = ((), ())
        self._held: dict[Range, Buffer] = {}
        """What Arrow may need."""
        self._reader: pq.ParquetFile | None = None

    def take(self, ranges: Sequence[Range], buffers: Sequence[Buffer]) -> None:
        """Of what came before only that is kept which Arrow shall read. Raises `CorruptData`."""
        self._file = SparseFile(self._size, ranges, buffers)
        self._part = ranges, buffers

    def decode(self, group: int) -> None:
        """Those of its columns that lie in what came last, and that kernels read."""
        found = {
            name: (chunk, data)
            for name in self._schema.names
            if name not in self._arrays
            and (chunk := self._footer.chunk(group, name)) is not None
            and (data := self._file.find(chunk.start, chunk.length)) is not None
        }
        chunks = [chunk for chunk, _ in found.values()]
        buffers = [pa.py_buffer(data) for _, data in found.values()]
        arrays = dict(zip(found, decoded(chunks, buffers), strict=True))
        self._arrays |= {name: array for name, array in arrays.items() if array is not None}
        if None in arrays.values() or len(self._part[0]) == len(self._ranges):
            self._hold(*self._part)

    def _hold(self, ranges: Sequence[Range], buffers: Sequence[Buffer]) -> None:
        if any(each not in self._held for each in ranges):
            self._held |= zip(ranges, buffers, strict=True)
            self._reader = None

    def batch(self, group: int) -> Generator[Need, Sequence[Buffer] | None, pa.RecordBatch]:
        """All of it. Raises `CorruptData`, `SchemaMismatch`."""
        names, arrays = self._schema.names, self._arrays
        self._arrays = {}
        others = [name for name in names if name not in arrays]
        if others:
            try:
                arrays |= self._by_arrow(group, others)
            except CorruptData:  # what is wrong is told by who sees all the columns
                left = tuple(each for each in self._ranges if each not in self._held)
                if left:
                    buffers = yield Need(left)
                    assert buffers is not None  # a Need is always answered
                    self._hold(left, buffers)
                self._reader = None
                arrays = self._by_arrow(group, names)
        columns = [convert(field.name, arrays[field.name], field.type) for field in self._schema]
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)

    def _by_arrow(self, group: int, names: Sequence[str]) -> dict[str, pa.Array]:
        self._reader = self._reader or self._open()
        with reading(f"row group {group}"):
            table = self._reader.read_row_group(group, columns=names, use_threads=False)
            arrays = {name: _one_array(table.column(name)) for name in names}
            stored = self._footer.metadata.row_group(group)
            for name, array in arrays.items():
                _check_count(array, stored, self._footer.leaves[name])
        return arrays

    def _open(self) -> pq.ParquetFile:
        file = SparseFile(self._size, tuple(self._held), tuple(self._held.values()))
        return pq.ParquetFile(
            pa.PythonFile(file, mode="r"),
            metadata=self._footer.metadata,
            pre_buffer=False,
            page_checksum_verification=True,
        )


def _one_array(column: pa.ChunkedArray) -> pa.Array:
    # to combine one chunk copies it
    array = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    return array.storage if isinstance(array, pa.ExtensionArray) else array


def _check_count(array: pa.Array, stored: pq.RowGroupMetaData, leaves: Sequence[int]) -> None:
    """Raises `ValueError` unless ``array`` has the rows and values that the footer counts.

    A page's header has no checksum, and says how many values to take from the page.
    """
    values = len(array)
    if is_list(array.type) or pa.types.is_large_list(array.type):
        lengths = pc.list_value_length(array).fill_null(1)
        values = pc.sum(pc.max_element_wise(lengths, 1)).as_py() or 0
    counted = {stored.column(leaf).num_values for leaf in leaves}
    if len(array) != stored.num_rows or values not in counted:
        raise ValueError(f"{values} values where the footer counts others")
