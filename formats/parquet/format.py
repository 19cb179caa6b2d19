"""Parquet: the footer says where each column of each row group lies, so only asked columns are
read.

A split is a run of row groups. All its byte ranges, the footer's included, are known in advance. So
decoding needs one request, and yields one record batch per row group.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from pipeprof.errors import CorruptData
from pipeprof.formats.arrow_errors import reading
from pipeprof.formats.base import (
    ByteRange,
    Decoding,
    Encoder,
    FilePlan,
    Format,
    Planning,
    ReadOptions,
    ReadRequest,
    Split,
    choose_compression,
    fetch,
)
from pipeprof.formats.parquet.encoder import ParquetEncoder
from pipeprof.formats.parquet.footer import (
    ENCRYPTED,
    MAGIC,
    Footer,
    check_apart,
    footer_length,
    parse_footer,
)
from pipeprof.formats.parquet.row_groups import decode_row_groups
from pipeprof.formats.sparse_file import SparseFile, coalesced
from pipeprof.formats.types import choose_columns, select

_TAIL_BYTES = 2**16
_LEAST_BYTES = 12
"""The least bytes of a file: magic, length of the footer, magic."""
_UNCOUNTED_BYTES = 100
"""Bytes that Arrow reads beyond a column of parquet-mr before 1.2.9, whose lengths do not count the
header of the dictionary."""
_COUNTS_ALL = re.compile(r"(?!parquet-mr\b)|parquet-mr version (1\.2\.9|1\.[3-9]|1\.\d\d|[2-9])")


class Parquet:
    """The format; see the module."""

    name = "parquet"
    suffixes: tuple[str, ...] = (".parquet", ".pq", ".parq")
    compressions: tuple[str, ...] = ("snappy", "zstd", "none", "gzip", "lz4")
    row_groups = True
    optional_columns = False
    cut_anywhere = False
    unforkable: str | None = None

    def sniff(self, head: bytes, tail: bytes) -> bool:
        return head.startswith(MAGIC) and tail.endswith((MAGIC, ENCRYPTED))

    def plan(
        self,
        size: int,
        columns: Sequence[str] | None,
        types: Mapping[str, pa.DataType],
        options: ReadOptions,
    ) -> Planning:
        """Plan the splits. The columns have the declared types; ``types`` converts to others."""
        if size < _LEAST_BYTES:
            raise CorruptData(f"it is {size} bytes long, too short for Parquet: truncated.")
        length = min(size, _TAIL_BYTES)
        tail = bytes((yield from fetch(size - length, length)))
        length = footer_length(tail, size)
        if length > len(tail):
            tail = bytes((yield from fetch(size - length, length)))
        footer = parse_footer(tail[-length:], size - length)
        schema, left_out = choose_columns(footer.schema, columns, types)
        splits = _splits(footer, schema.names, (size - length, length), options) if schema else ()
        return FilePlan(schema, tuple(splits), left_out)

    def decode(self, size: int, split: Split, schema: pa.Schema, options: ReadOptions) -> Decoding:
        buffers = yield ReadRequest(split.ranges)
        assert buffers is not None  # a request is always answered
        file = SparseFile(size, split.ranges, buffers)
        (start, _), *_ = split.ranges
        footer = parse_footer(bytes(buffers[0]), start)
        with reading("the footer"):
            select(footer.names, schema.names)
        yield from decode_row_groups(file, footer, range(split.start, split.end), schema)

    def encoder(self, schema: pa.Schema, compression: str | None = None) -> Encoder:
        return ParquetEncoder(schema, choose_compression(self.name, self.compressions, compression))


def _splits(
    footer: Footer, names: Sequence[str], footer_range: ByteRange, options: ReadOptions
) -> Iterator[Split]:
    """Yield runs of row groups, each of about ``split_bytes`` of asked columns and at least one
    group."""
    groups = footer.ranges(names)
    uncounted = 0 if _COUNTS_ALL.match(footer.created_by) else _UNCOUNTED_BYTES
    check_apart(sorted(chunk for chunks in groups for chunk in chunks))
    sizes = [sum(length for _, length in chunks) for chunks in groups]
    start, split_size = 0, 0
    for end, size in enumerate([*sizes, 0]):
        if end == len(groups) or 0 < options.split_bytes < split_size + size:
            if end > start:
                chunks = [chunk for run in groups[start:end] for chunk in run]
                ranges = [
                    (at, min(length + uncounted, sum(footer_range) - at))
                    for at, length in coalesced(chunks, options.gap_bytes)
                ]
                rows = sum(footer.rows[start:end])
                yield Split(start, end, rows, (footer_range, *ranges))
            start, split_size = end, 0
        split_size += size


FORMAT: Format = Parquet()
