"""Arrow IPC: files with a footer, as Feather V2 and pandas write them, and streams, as
`datasets.save_to_disk` does.

A split of a file is a run of record batches. Where all columns are asked for, one request brings
all of them. Otherwise a first request brings what says where the columns lie, and a second one
these. A stream has no index, so it is one split.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import pyarrow as pa

from pipeprof.errors import FormatError
from pipeprof.formats.arrow.encoder import ArrowEncoder
from pipeprof.formats.arrow.file_layout import (
    MAGIC,
    FileLayout,
    find_layout,
    footer_range,
    missing_ranges,
    open_file,
)
from pipeprof.formats.arrow.row_counts import count_rows
from pipeprof.formats.arrow.stream_batches import CONTINUATION, StreamBatches, begins_stream
from pipeprof.formats.arrow_errors import reading
from pipeprof.formats.base import (
    SMALLEST,
    Buffer,
    Decoding,
    Encoder,
    Fault,
    FilePlan,
    Format,
    Planning,
    ReadOptions,
    ReadRequest,
    Split,
    choose_compression,
    fetch,
)
from pipeprof.formats.sparse_file import SparseFile, coalesced
from pipeprof.formats.stream import Stream
from pipeprof.formats.types import choose_columns, convert_batch, select

_HEAD_BYTES = 8
_TAIL_BYTES = 2**16
_PLAN_BLOCK_BYTES = 2**16


class Arrow:
    """The format; see the module."""

    name = "arrow"
    suffixes: tuple[str, ...] = (".arrow", ".feather")
    compressions: tuple[str, ...] = ("none", "lz4", "zstd")
    row_groups = True
    optional_columns = False
    cut_anywhere = False
    unforkable: str | None = None

    def sniff(self, head: bytes, tail: bytes) -> bool:
        return (head.startswith(MAGIC) and tail.endswith(MAGIC)) or begins_stream(head)

    def plan(
        self,
        size: int,
        columns: Sequence[str] | None,
        types: Mapping[str, pa.DataType],
        options: ReadOptions,
    ) -> Planning:
        """Plan the splits. The columns have the declared types; ``types`` converts to others."""
        head = yield from fetch(0, min(size, _HEAD_BYTES))
        if bytes(head).startswith(CONTINUATION):
            return (yield from _plan_stream(size, columns, types))
        length = min(size, _TAIL_BYTES)
        tail = bytes((yield from fetch(size - length, length)))
        footer = footer_range(tail, size)
        if footer[1] > length:
            tail = bytes((yield from fetch(*footer)))
        layout = yield from find_layout(size, footer, tail[-footer[1] :])
        schema, left_out = choose_columns(layout.schema, columns, types)
        every = len(schema) == len(layout.schema)
        rows: Sequence[int | None] = (None,) * len(layout.batches)
        if options.split_bytes == SMALLEST:
            rows = yield from count_rows(layout, options.gap_bytes)
        return FilePlan(schema, tuple(_splits(layout, every, options, rows)), left_out)

    def decode(self, size: int, split: Split, schema: pa.Schema, options: ReadOptions) -> Decoding:
        if not split.ranges:
            yield from _decode_stream(size, schema, options)
            return
        ranges, answer = split.ranges, (yield ReadRequest(split.ranges))
        assert answer is not None  # a request is always answered
        buffers, batches = list(answer), range(split.start, split.end)
        with reading("the footer"):
            stored = open_file(SparseFile(size, ranges, buffers)).schema
            columns = [stored.names.index(name) for name in select(stored.names, schema.names)]
        if len(columns) < len(stored):  # the batches were not fetched whole
            missing = missing_ranges(size, ranges, buffers, batches, columns)
            asked = tuple(coalesced(missing, options.gap_bytes))
            answer = (yield ReadRequest(asked)) if asked else ()
            assert answer is not None
            ranges, buffers = (*ranges, *asked), [*buffers, *answer]
        included = columns if len(columns) < len(stored) else None
        yield from _decode_batches(SparseFile(size, ranges, buffers), batches, included, schema)

    def encoder(self, schema: pa.Schema, compression: str | None = None) -> Encoder:
        return ArrowEncoder(schema, choose_compression(self.name, self.compressions, compression))


def _splits(
    layout: FileLayout, every: bool, options: ReadOptions, rows: Sequence[int | None]
) -> Iterator[Split]:
    """Yield runs of record batches, of about ``split_bytes`` each and at least one batch. With
    ``every`` column they are fetched whole. ``rows`` are those of each batch, where known."""
    wanted = layout.batches if every else layout.heads
    start, split_size, count = 0, 0, len(layout.batches)
    for end, (_, size) in enumerate([*layout.batches, (0, 0)]):
        if end == count or 0 < options.split_bytes < split_size + size:
            if end > start:
                own = [each for each in wanted[start:end] if each[1]]
                ranges = coalesced(own, options.gap_bytes)
                known = [each for each in rows[start:end] if each is not None]
                total = sum(known) if len(known) == end - start else None
                yield Split(start, end, total, (*layout.shared, *ranges))
            start, split_size = end, 0
        split_size += size


def _decode_batches(
    file: SparseFile, numbers: Iterable[int], columns: Sequence[int] | None, schema: pa.Schema
) -> Iterator[pa.RecordBatch | Fault]:
    """Yield record batches with the columns of these numbers, or the faults that damage them."""
    reader: pa.ipc.RecordBatchFileReader | None = None
    for number in numbers:
        if reader is None:
            with reading("the footer"):
                reader = open_file(file, columns)
        try:
            rows = _decode(reader, number, schema)
        except FormatError as error:
            reader = None
            yield Fault(error, None)
        else:
            if rows.num_rows:
                yield rows


def _decode(reader: pa.ipc.RecordBatchFileReader, number: int, schema: pa.Schema) -> pa.RecordBatch:
    """Raises `CorruptData`, `SchemaMismatch`."""
    with reading(f"record batch {number}"):
        batch = reader.get_batch(number)
        batch.validate(full=True)  # Arrow trusts offsets and text
    return convert_batch(batch, schema)


def _plan_stream(
    size: int, columns: Sequence[str] | None, types: Mapping[str, pa.DataType]
) -> Planning:
    stream, batches = Stream(size, _PLAN_BLOCK_BYTES, lambda _: None), StreamBatches()
    while batches.schema is None:
        block: Buffer = yield from stream.read()
        if not len(block):
            batches.finish()
        for _ in batches.push(block):
            break
    schema, left_out = choose_columns(batches.schema, columns, types)
    return FilePlan(schema, (Split(0, size),), left_out)


def _decode_stream(size: int, schema: pa.Schema, options: ReadOptions) -> Decoding:
    stream, batches = Stream(size, options.block_bytes, lambda _: None), StreamBatches(schema.names)
    while len(block := (yield from stream.read())):
        for batch in batches.push(block):
            if batch.num_rows:
                yield convert_batch(batch, schema)
    batches.finish()


FORMAT: Format = Arrow()
