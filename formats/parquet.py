"""Parquet: the footer says where each column of each row group lies; only those asked for are read.

A split is a run of row groups. All its ranges, footer included, are known beforehand, so decoding
needs one fetch, and gives one record batch per row group.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipeprof.errors import CorruptData, FormatError, SchemaMismatch
from pipeprof.formats.base import (
    Decoding,
    Encoder,
    Fault,
    FilePlan,
    Format,
    Need,
    Planning,
    Range,
    ReadOptions,
    Split,
    choose_compression,
    fetch,
)
from pipeprof.formats.parquet_columns import decoded
from pipeprof.formats.parquet_encoder import ParquetEncoder
from pipeprof.formats.parquet_footer import (
    ENCRYPTED,
    MAGIC,
    Footer,
    check_apart,
    footer_bytes,
    known,
)
from pipeprof.formats.parquet_head import reading
from pipeprof.formats.sparse import OutsideRanges, SparseFile
from pipeprof.formats.types import (
    check_types,
    convert,
    format_type,
    is_list,
    plain_type,
    select,
)

_TAIL_BYTES = 2**16
_LEAST = 12
"""Bytes of a file: magic, footer length, magic."""
_UNCOUNTED = 100
"""Bytes that Arrow reads beyond a column of parquet-mr before 1.2.9, whose lengths leave out the
header of the dictionary."""
_COUNTS_ALL = re.compile(r"(?!parquet-mr\b)|parquet-mr version (1\.2\.9|1\.[3-9]|1\.\d\d|[2-9])")


class Parquet:
    """See the module."""

    name = "parquet"
    suffixes: tuple[str, ...] = (".parquet", ".pq", ".parq")
    compressions: tuple[str, ...] = ("snappy", "zstd", "none", "gzip", "lz4")

    def sniff(self, head: bytes, tail: bytes) -> bool:
        return head.startswith(MAGIC) and tail.endswith((MAGIC, ENCRYPTED))

    def plan(
        self,
        size: int,
        columns: Sequence[str] | None,
        types: Mapping[str, pa.DataType],
        options: ReadOptions,
    ) -> Planning:
        """Types are those declared; ``types`` converts to others."""
        if size < _LEAST:
            raise CorruptData(f"it is {size} bytes long, too short for Parquet: truncated.")
        length = min(size, _TAIL_BYTES)
        tail = yield from fetch(size - length, length)
        length = footer_bytes(tail, size)
        if length > len(tail):
            tail = yield from fetch(size - length, length)
        footer = known(tail[-length:], size - length)
        schema = _schema(footer.schema, columns, types)
        footer.load(schema.names)
        splits = _splits(footer, schema.names, (size - length, length), options)
        return FilePlan(schema, tuple(splits))

    def decode(self, size: int, split: Split, schema: pa.Schema, options: ReadOptions) -> Decoding:
        buffers = yield Need(split.ranges)
        assert buffers is not None  # a Need is always answered
        file = SparseFile(size, split.ranges, buffers)
        footer = known(bytes(buffers[0]), split.ranges[0][0])
        with reading("the footer"):
            select(footer.schema.names, schema.names)
            groups = _RowGroups(file, footer, schema)
            counts = {i: footer.rows[i] for i in range(split.start, split.end)}
        for group, rows in counts.items():
            if rows:
                try:
                    yield groups.read(group)
                except FormatError as error:
                    yield Fault(error, rows)

    def encoder(self, schema: pa.Schema, compression: str | None = None) -> Encoder:
        return ParquetEncoder(schema, choose_compression(self.name, self.compressions, compression))


def _schema(
    declared: pa.Schema, columns: Sequence[str] | None, types: Mapping[str, pa.DataType]
) -> pa.Schema:
    check_types(types, declared.names)
    fields = []
    for name in select(declared.names, columns):
        dtype = types.get(name, plain_type(declared.field(name).type))
        if dtype is None:
            others = [field.name for field in declared if plain_type(field.type) is not None]
            raise SchemaMismatch(
                f"column {name!r} is {format_type(declared.field(name).type)}, which has no "
                f"tensor; ask for other columns, e.g. columns={others[:3]}."
            )
        fields.append(pa.field(name, dtype))
    return pa.schema(fields)


def _splits(
    footer: Footer, names: Sequence[str], place: Range, options: ReadOptions
) -> Iterator[Split]:
    """Runs of row groups whose asked columns come to ``split_bytes``, at least one each."""
    groups = footer.ranges(names)
    uncounted = 0 if _COUNTS_ALL.match(footer.created_by) else _UNCOUNTED
    check_apart(sorted(chunk for _, chunks in groups for chunk in chunks))
    sizes = [sum(length for _, length in chunks) for _, chunks in groups]
    start, held = 0, 0
    for end, size in enumerate([*sizes, 0]):
        if end == len(groups) or 0 < options.split_bytes < held + size:
            if end > start:
                run = groups[start:end]
                ranges = _merged([c for _, chunks in run for c in chunks], options.gap_bytes)
                ranges = [(at, min(n + uncounted, sum(place) - at)) for at, n in ranges]
                yield Split(start, end, sum(rows for rows, _ in run), (place, *ranges))
            start, held = end, 0
        held += size


def _merged(ranges: Sequence[Range], gap: int) -> list[Range]:
    """The same bytes in few ranges: those with at most ``gap`` bytes between them are one."""
    merged: list[Range] = []
    for start, length in sorted(ranges):
        if merged and start - sum(merged[-1]) <= gap:
            merged[-1] = (merged[-1][0], start + length - merged[-1][0])
        else:
            merged.append((start, length))
    return merged


class _RowGroups:
    """Those of a split."""

    def __init__(self, file: SparseFile, footer: Footer, schema: pa.Schema) -> None:
        self._file, self._footer, self._schema = file, footer, schema
        self._reader = None if footer.is_plain(schema.names) else self._open()

    def read(self, group: int) -> pa.RecordBatch:
        """Raises `CorruptData`, `SchemaMismatch`."""
        schema, names = self._schema, self._schema.names
        arrays = {name: self._decoded(group, name) for name in names}
        others = [name for name in names if arrays[name] is None]
        if others:
            try:
                arrays |= self._by_arrow(group, others)
            except CorruptData:  # what is wrong is told by who sees all the columns
                self._reader = None
                arrays = self._by_arrow(group, names)
        columns = [convert(field.name, arrays[field.name], field.type) for field in schema]
        return pa.RecordBatch.from_arrays(columns, schema=schema)

    def _decoded(self, group: int, name: str) -> pa.Array | None:
        chunk = self._footer.chunk(group, name)
        if chunk is None:
            return None
        try:
            data = self._file.view(chunk.start, chunk.length)
        except OutsideRanges:
            return None
        return decoded(chunk, pa.py_buffer(data))

    def _by_arrow(self, group: int, names: Sequence[str]) -> dict[str, pa.Array]:
        if self._reader is None:
            self._reader = self._open()
        with reading(f"row group {group}"):
            table = self._reader.read_row_group(group, columns=names, use_threads=False)
            arrays = {name: _one_array(table.column(name)) for name in names}
            stored = self._footer.metadata.row_group(group)
            for name, array in arrays.items():
                _check_count(array, stored, self._footer.leaves[name])
        return arrays

    def _open(self) -> pq.ParquetFile:
        return pq.ParquetFile(
            pa.PythonFile(self._file, mode="r"),
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


FORMAT: Format = Parquet()
