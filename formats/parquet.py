"""Parquet: the footer says where each column of each row group lies; only those asked for are read.

A split is a run of row groups. All its ranges, footer included, are known beforehand, so decoding
needs one fetch, and gives one record batch per row group.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import pairwise

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
from pipeprof.formats.parquet_encoder import ParquetEncoder
from pipeprof.formats.sparse import OutsideRanges, SparseFile
from pipeprof.formats.types import (
    check_types,
    convert,
    first_line,
    format_type,
    is_list,
    plain_type,
    select,
)

_MAGIC = b"PAR1"
_ENCRYPTED = b"PARE"
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
        return head.startswith(_MAGIC) and tail.endswith((_MAGIC, _ENCRYPTED))

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
        footer_bytes = _footer_bytes(tail, size)
        if footer_bytes > len(tail):
            tail = yield from fetch(size - footer_bytes, footer_bytes)
        metadata = _metadata(tail[-footer_bytes:])
        schema = _schema(metadata, columns, types)
        footer = (size - footer_bytes, footer_bytes)
        return FilePlan(schema, tuple(_splits(metadata, schema.names, footer, options)))

    def decode(self, size: int, split: Split, schema: pa.Schema, options: ReadOptions) -> Decoding:
        buffers = yield Need(split.ranges)
        assert buffers is not None  # a Need is always answered
        file = SparseFile(size, split.ranges, buffers)
        metadata = _metadata(bytes(buffers[0]))
        with _reading("the footer"):
            declared = metadata.schema.to_arrow_schema().names
            select(declared, schema.names)
            reader = pq.ParquetFile(
                pa.PythonFile(file, mode="r"),
                metadata=metadata,
                pre_buffer=False,
                page_checksum_verification=True,
            )
            leaves = _leaves(metadata)
            counts = {i: metadata.row_group(i).num_rows for i in range(split.start, split.end)}
        for group, rows in counts.items():
            if rows:
                try:
                    yield _row_group(reader, group, schema, leaves)
                except FormatError as error:
                    yield Fault(error, rows)

    def encoder(self, schema: pa.Schema, compression: str | None = None) -> Encoder:
        return ParquetEncoder(schema, choose_compression(self.name, self.compressions, compression))


@contextmanager
def _reading(what: str) -> Iterator[None]:
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


def _footer_bytes(tail: bytes, size: int) -> int:
    """Length of the footer with its length and magic. Raises `CorruptData`."""
    if tail.endswith(_ENCRYPTED):
        raise CorruptData("its footer is encrypted, which is not read.")
    if not tail.endswith(_MAGIC):
        raise CorruptData(
            f"it does not end with {_MAGIC.decode()}: truncated, still being written, or not "
            "Parquet."
        )
    length = int.from_bytes(tail[-8:-4], "little") + 8
    if length + len(_MAGIC) > size:
        raise CorruptData(
            f"its footer says it is {length - 8} bytes long, more than the {size} bytes of the "
            "file: damaged."
        )
    return length


def _metadata(footer: bytes) -> pq.FileMetaData:
    with _reading("the footer"):
        return pq.read_metadata(pa.BufferReader(footer))


def _schema(
    metadata: pq.FileMetaData, columns: Sequence[str] | None, types: Mapping[str, pa.DataType]
) -> pa.Schema:
    with _reading("the footer"):
        declared = metadata.schema.to_arrow_schema()
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
    metadata: pq.FileMetaData, names: Sequence[str], footer: Range, options: ReadOptions
) -> Iterator[Split]:
    """Runs of row groups whose asked columns come to ``split_bytes``, at least one each."""
    with _reading("the footer"):
        _check_chunks(metadata, names, footer)
        uncounted = 0 if _COUNTS_ALL.match(metadata.created_by or "") else _UNCOUNTED
        named = _leaves(metadata)
        leaves = sorted({leaf for name in names for leaf in named[name]})
        groups = [
            (metadata.row_group(i).num_rows, _chunks(metadata, i, leaves, footer[0]))
            for i in range(metadata.num_row_groups)
        ]
    _check_apart(sorted(chunk for _, chunks in groups for chunk in chunks))
    sizes = [sum(length for _, length in chunks) for _, chunks in groups]
    start, held = 0, 0
    for end, size in enumerate([*sizes, 0]):
        if end == len(groups) or 0 < options.split_bytes < held + size:
            if end > start:
                run = groups[start:end]
                ranges = _merged([c for _, chunks in run for c in chunks], options.gap_bytes)
                ranges = [(at, min(n + uncounted, sum(footer) - at)) for at, n in ranges]
                yield Split(start, end, sum(rows for rows, _ in run), (footer, *ranges))
            start, held = end, 0
        held += size


def _check_chunks(metadata: pq.FileMetaData, names: Sequence[str], footer: Range) -> None:
    """Let Arrow look at every column chunk's metadata, by a read that ends before its first byte.

    `RowGroupMetaData.column` aborts the whole process on a chunk that contradicts the schema;
    reading raises. Buffering ahead, a read looks at all chunks before it fetches any.
    """
    nothing = SparseFile(sum(footer), (), ())
    reader = pq.ParquetFile(pa.PythonFile(nothing, mode="r"), metadata=metadata, pre_buffer=True)
    with suppress(OutsideRanges):
        reader.read_row_groups(range(metadata.num_row_groups), columns=names, use_threads=False)


def _leaves(metadata: pq.FileMetaData) -> dict[str, list[int]]:
    """Which stored columns Arrow reads for a name: it takes every part of a path for one."""
    leaves: dict[str, list[int]] = {}
    for index in range(metadata.num_columns):
        parts = metadata.schema.column(index).path.split(".")
        for depth in range(1, len(parts) + 1):
            leaves.setdefault(".".join(parts[:depth]), []).append(index)
    return leaves


def _chunks(metadata: pq.FileMetaData, group: int, leaves: Sequence[int], end: int) -> list[Range]:
    """Where the columns of a row group with rows lie. Raises `CorruptData` when not in the file."""
    row_group = metadata.row_group(group)
    if not row_group.num_rows:
        return []
    chunks = []
    for leaf in leaves:
        column = row_group.column(leaf)
        start, length = column.data_page_offset, column.total_compressed_size
        if column.has_dictionary_page and column.dictionary_page_offset:
            start = min(start, column.dictionary_page_offset)
        if start < len(_MAGIC) or length < 0 or start + length > end:
            raise CorruptData(
                f"the footer is damaged: it places column {column.path_in_schema!r} of row group "
                f"{group} at byte {start}, {length} bytes long, where no column can be."
            )
        chunks.append((start, length))
    return chunks


def _check_apart(chunks: Sequence[Range]) -> None:
    """Raises `CorruptData` when two column chunks share bytes."""
    for (start, length), (following, _) in pairwise(chunks):
        if start + length > following:
            raise CorruptData(f"the footer is damaged: it places two columns at byte {following}.")


def _merged(ranges: Sequence[Range], gap: int) -> list[Range]:
    """The same bytes in few ranges: those with at most ``gap`` bytes between them are one."""
    merged: list[Range] = []
    for start, length in sorted(ranges):
        if merged and start - sum(merged[-1]) <= gap:
            merged[-1] = (merged[-1][0], start + length - merged[-1][0])
        else:
            merged.append((start, length))
    return merged


def _row_group(
    reader: pq.ParquetFile, group: int, schema: pa.Schema, leaves: Mapping[str, Sequence[int]]
) -> pa.RecordBatch:
    """Raises `CorruptData`, `SchemaMismatch`."""
    with _reading(f"row group {group}"):
        table = reader.read_row_group(group, columns=schema.names, use_threads=False)
        arrays = [_one_array(table.column(name)) for name in schema.names]
        stored = reader.metadata.row_group(group)
        for name, array in zip(schema.names, arrays, strict=True):
            _check_count(array, stored, leaves[name])
    columns = [
        convert(field.name, array, field.type) for field, array in zip(schema, arrays, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


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
