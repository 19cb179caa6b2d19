"""MDS: the shards of MosaicML Streaming, plain, gzip or zstd.

A plain shard says where each sample lies, so a split is a run of samples. A compressed one is one
split. The file ``index.json`` in their folder is not read, as each shard describes itself. Pickled
columns stay bytes: to unpickle them would run what they say.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from pipeprof.errors import CorruptData
from pipeprof.formats.base import (
    Buffer,
    ByteRange,
    Decoding,
    Encoder,
    Fault,
    FilePlan,
    Format,
    Planning,
    ReadOptions,
    Split,
    choose_compression,
    fetch,
    fetch_ranges,
)
from pipeprof.formats.bisect_errors import decode_undamaged
from pipeprof.formats.decompress import plain_head, recognise
from pipeprof.formats.gather import Places
from pipeprof.formats.mds.columns import to_batch
from pipeprof.formats.mds.encoder import MdsEncoder
from pipeprof.formats.mds.layout import (
    SIZE_BYTES,
    Header,
    StoredColumn,
    header_end,
    offsets_end,
    parse_columns,
    parse_header,
    parse_offsets,
)
from pipeprof.formats.stream import Stream
from pipeprof.formats.types import choose_columns

_HEAD_BYTES = 2**16
_ROWS_AT_ONCE = 8192
_LEAST_CONFIG_BYTES, _MOST_CONFIG_BYTES = 60, 2**20
"""Bytes of the description of the columns from which a shard is recognised."""
_MOST_HEADER_BYTES = 2**28
"""Most bytes of a compressed header, 64 million samples."""


class Mds:
    """The format; see the module."""

    name = "mds"
    suffixes: tuple[str, ...] = (".mds", ".mds.zstd", ".mds.zst", ".mds.gz")
    compressions: tuple[str, ...] = ("none", "gzip", "zstd")
    row_groups = False
    optional_columns = False
    cut_anywhere = False
    unforkable: str | None = None

    def sniff(self, head: bytes, tail: bytes) -> bool:
        plain = plain_head(head)
        if len(plain) < 2 * SIZE_BYTES:
            return False
        begin = offsets_end(plain)
        there = (min(begin, len(plain)) - SIZE_BYTES) // SIZE_BYTES
        offsets = np.frombuffer(plain, "<u4", there, SIZE_BYTES).astype(np.int64)
        return bool(
            _LEAST_CONFIG_BYTES <= offsets[0] - begin <= _MOST_CONFIG_BYTES
            and (np.diff(offsets) >= 0).all()
            and plain[begin : begin + 1] in (b"", b"{")
        )

    def plan(
        self,
        size: int,
        columns: Sequence[str] | None,
        types: Mapping[str, pa.DataType],
        options: ReadOptions,
    ) -> Planning:
        """Plan the splits from what stands before the samples."""
        if size < 2 * SIZE_BYTES:
            raise _truncated()
        head = bytes((yield from fetch(0, min(size, _HEAD_BYTES))))
        if recognise(head) is not None:
            return (yield from _plan_stream(size, columns, types))
        end = header_end(head)
        if end > size:
            raise _truncated()
        if end > len(head):
            head += bytes((yield from fetch(len(head), end - len(head))))
        header = parse_header(head, size)
        schema, left_out = choose_columns(header.schema, columns, types)
        if not header.samples:
            return FilePlan(None, ())
        starts = _starts(header.offsets, options.split_bytes)
        bounds = zip(starts, [*starts[1:], header.samples], strict=True)
        splits = (Split(first, last, last - first, _ranges(header, offsets_end(head), first, last))
                  for first, last in bounds)  # fmt: skip
        return FilePlan(schema, tuple(splits), left_out)

    def decode(self, size: int, split: Split, schema: pa.Schema, options: ReadOptions) -> Decoding:
        if not split.ranges:
            yield from _decode_stream(size, schema, options)
            return
        buffers = yield from fetch_ranges(split.ranges)
        if len(buffers) == 1:
            header = parse_header(buffers[0], None)
            offsets, columns, first = header.offsets[: split.end + 1], header.columns, 0
        else:
            offsets, columns = parse_offsets(buffers[0]), parse_columns(buffers[1])
            first = split.ranges[-1][0]
        if len(offsets) != split.end - split.start + 1 or offsets[-1] != sum(split.ranges[-1]):
            raise CorruptData("its offsets changed while it was read.")
        yield from _decode(buffers[-1], offsets - first, columns, schema, options.block_bytes)

    def encoder(self, schema: pa.Schema, compression: str | None = None) -> Encoder:
        chosen = choose_compression(self.name, self.compressions, compression)
        return MdsEncoder(schema, chosen)


def _starts(offsets: Places, split_bytes: int) -> list[int]:
    """Return the first sample of each split."""
    if not split_bytes:
        return [0]
    marks = np.arange(offsets[0], offsets[-1], split_bytes)
    found: list[int] = np.unique(np.searchsorted(offsets[:-1], marks)).tolist()
    return [each for each in found if each < len(offsets) - 1] or [0]


def _ranges(header: Header, columns_at: int, first: int, last: int) -> tuple[ByteRange, ...]:
    """Return what to read of a split: its offsets, the description of the columns, its samples. For
    the first split these lie side by side."""
    offsets = header.offsets
    samples = int(offsets[first]), int(offsets[last] - offsets[first])
    if first == 0:
        return ((0, sum(samples)),)
    places = SIZE_BYTES * (1 + first), SIZE_BYTES * (last - first + 1)
    return places, (columns_at, int(offsets[0]) - columns_at), samples


def _decode(
    data: Buffer,
    offsets: Places,
    columns: Sequence[StoredColumn],
    schema: pa.Schema,
    part_bytes: int,
) -> Iterator[Fault | pa.RecordBatch]:
    """Decode the samples at ``offsets`` of ``data``, some at a time."""
    begin = 0
    while begin < len(offsets) - 1:
        end = int(np.searchsorted(offsets, offsets[begin] + part_bytes, "right")) - 1
        end = min(max(end, begin + 1), begin + _ROWS_AT_ONCE)
        yield from decode_undamaged(
            offsets[begin : end + 1],
            lambda some: to_batch(data, some, columns, schema),
            _halves,
            lambda some: len(some) - 1,
        )
        begin = end


def _halves(offsets: Places) -> tuple[Places, Places] | None:
    middle = len(offsets) // 2
    return (offsets[: middle + 1], offsets[middle:]) if len(offsets) > 2 else None


def _plan_stream(
    size: int, columns: Sequence[str] | None, types: Mapping[str, pa.DataType]
) -> Planning:
    stream, head = Stream(size, _HEAD_BYTES, recognise), _Head()
    while head.header is None:
        head.add((yield from stream.read()))
    schema, left_out = choose_columns(head.header.schema, columns, types)
    samples = head.header.samples
    return (
        FilePlan(schema, (Split(0, samples, samples),), left_out) if samples else FilePlan(None, ())
    )


def _decode_stream(size: int, schema: pa.Schema, options: ReadOptions) -> Decoding:
    """Decode a compressed shard block by block."""
    stream, head = Stream(size, options.block_bytes, recognise), _Head()
    while head.header is None:
        head.add((yield from stream.read()))
    offsets, columns = head.header.offsets, head.header.columns
    rest, at, done = head.data[int(offsets[0]) :], int(offsets[0]), 0
    while True:
        complete = int(np.searchsorted(offsets, at + len(rest), "right")) - 1
        if complete > done:
            places = offsets[done : complete + 1] - at
            yield from _decode(bytes(rest), places, columns, schema, options.block_bytes)
            del rest[: int(places[-1])]
            at, done = int(offsets[complete]), complete
        block = yield from stream.read()
        if not len(block):
            break
        rest += block
    if done < head.header.samples or rest:
        raise _truncated()


class _Head:
    """The first bytes of a stream, until they hold the whole header."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.header: Header | None = None

    def add(self, block: Buffer) -> None:
        """Add a block. Raises `CorruptData` for the end of the stream."""
        if not len(block):
            raise _truncated()
        self.data += block
        if len(self.data) >= 2 * SIZE_BYTES:
            end = header_end(self.data)
            if end > _MOST_HEADER_BYTES:
                raise CorruptData(f"its header is said to have {end} bytes; it is damaged.")
            if len(self.data) >= end:
                self.header = parse_header(self.data, None)


def _truncated() -> CorruptData:
    return CorruptData("it ends before its last sample does, or other bytes follow: truncated?")


FORMAT: Format = Mds()
