"""Parquet: the footer says where each column of each row group lies; only those asked for are read.

A split is a run of row groups. All its ranges, footer included, are known beforehand, so decoding
needs one fetch, and gives one record batch per row group. A row group that is longer than a block
is fetched part by part: so the bytes that are decoded are those which came last, and are still in
the processor's caches.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise

import pyarrow as pa

from pipeprof.errors import CorruptData, FormatError, SchemaMismatch
from pipeprof.formats.base import (
    AHEAD,
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
    check_length,
    choose_compression,
    fetch,
)
from pipeprof.formats.parquet_encoder import ParquetEncoder
from pipeprof.formats.parquet_footer import (
    ENCRYPTED,
    MAGIC,
    Footer,
    check_apart,
    footer_bytes,
    known,
)
from pipeprof.formats.parquet_groups import RowGroups
from pipeprof.formats.parquet_head import Head, reading
from pipeprof.formats.types import check_types, format_type, plain_type, select

_TAIL_BYTES = 2**16
_LEAST = 12
"""Bytes of a file: magic, footer length, magic."""
_UNCOUNTED = 100
"""Bytes that Arrow reads beyond a column of parquet-mr before 1.2.9, whose lengths leave out the
header of the dictionary."""
_KEPT = 4
"""Schemas: the files of a data set often have the same."""
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
        asked = None if columns is None else tuple(columns)
        schema = _schema(footer.head, asked, tuple(types.items()))
        footer.load(schema.names)
        splits = _splits(footer, schema.names, (size - length, length), options)
        return FilePlan(schema, tuple(splits))

    def decode(self, size: int, split: Split, schema: pa.Schema, options: ReadOptions) -> Decoding:
        place, *ranges = split.ranges
        parts = _parts(split, options.gap_bytes)
        for number, part in enumerate(parts):
            first = (place,) if not number else ()
            then = parts[number + 1 :][:AHEAD]
            buffers = yield Need((*first, *part), tuple(following for (following,) in then))
            assert buffers is not None  # a Need is always answered
            if first:
                check_length(buffers[0], *place)
                footer = known(bytes(buffers[0]), place[0])
                with reading("the footer"):
                    select(footer.head.names, schema.names)
                    counts = {i: footer.rows[i] for i in range(split.start, split.end)}
                groups = RowGroups(size, ranges, footer, schema)
            groups.take(part, buffers[len(first) :])
            for group, rows in counts.items():
                if rows:
                    groups.decode(group)
                if rows and number + 1 == len(parts):
                    try:
                        yield (yield from groups.batch(group))
                    except FormatError as error:
                        yield Fault(error, rows)

    def encoder(self, schema: pa.Schema, compression: str | None = None) -> Encoder:
        return ParquetEncoder(schema, choose_compression(self.name, self.compressions, compression))


@lru_cache(_KEPT)
def _schema(
    head: Head, columns: Sequence[str] | None, asked: Sequence[tuple[str, pa.DataType]]
) -> pa.Schema:
    """``asked``: columns and their types."""
    declared, types, fields = head.schema, dict(asked), list[pa.Field]()
    check_types(types, declared.names)
    for name in select(head.names, columns):
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
                all_chunks = [chunk for _, chunks in run for chunk in chunks]
                ranges = _merged(all_chunks, options.gap_bytes)
                if len(run) == len(ranges) == 1 and not uncounted and footer.is_plain(names):
                    ranges = _merged(all_chunks, options.gap_bytes, options.block_bytes)
                ranges = [(at, min(n + uncounted, sum(place) - at)) for at, n in ranges]
                yield Split(start, end, sum(rows for rows, _ in run), (place, *ranges))
            start, held = end, 0
        held += size


def _parts(split: Split, gap: int) -> list[tuple[Range, ...]]:
    """What is fetched together: everything; but each range alone, where they are those of one row
    group that lies in one piece."""
    _, *ranges = split.ranges
    near = all(start - sum(before) <= gap for before, (start, _) in pairwise(ranges))
    if near and len(ranges) > 1 and split.end - split.start == 1:
        return [(each,) for each in ranges]
    return [tuple(ranges)]


def _merged(ranges: Sequence[Range], gap: int, most: int = sys.maxsize) -> list[Range]:
    """The same bytes in few ranges: those with at most ``gap`` bytes between them are one, if that
    is not longer than ``most``."""
    merged: list[Range] = []
    for start, length in sorted(ranges):
        near = bool(merged) and start - sum(merged[-1]) <= gap
        if near and start + length - merged[-1][0] <= most:
            merged[-1] = (merged[-1][0], start + length - merged[-1][0])
        else:
            merged.append((start, length))
    return merged


FORMAT: Format = Parquet()
