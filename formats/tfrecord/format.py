"""TFRecord: framed `tf.train.Example` records, plain, or compressed as a whole by gzip or zlib.

An object is one split: framing cannot be entered in the middle, and to find the records in advance
would read everything twice. Workers share a data set by its objects. An object is streamed, so
memory holds no more than a block and one record.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from pipeprof.errors import FormatError, SchemaMismatch
from pipeprof.formats.base import (
    Buffer,
    Decoding,
    Encoder,
    Fault,
    FilePlan,
    Format,
    Planning,
    ReadOptions,
    Split,
    choose_compression,
)
from pipeprof.formats.bisect_errors import decode_undamaged
from pipeprof.formats.decompress import Codec, inflate_head, is_gzip, is_zlib
from pipeprof.formats.stream import Stream
from pipeprof.formats.tfrecord import columns as blocks
from pipeprof.formats.tfrecord import example
from pipeprof.formats.tfrecord.encoder import TFRecordEncoder
from pipeprof.formats.tfrecord.framing import Deframer, Records, is_framed
from pipeprof.formats.types import select

_SAMPLE_BYTES = 2**20
_SAMPLE_RECORDS = 256
Decoded = Iterator["Fault | pa.RecordBatch"]
_ROWS_AT_ONCE = 8192
"""Rows of one record batch. A whole block of small records would delay the first batch of
samples."""


def recognise(head: bytes) -> Codec | None:
    """Return how these first bytes are compressed. A zlib header may also begin a plain record."""
    if is_framed(head):
        return None
    if is_gzip(head):
        return "gzip"
    return "zlib" if is_zlib(head) else None


class TFRecord:
    """The format; see the module."""

    name = "tfrecord"
    suffixes: tuple[str, ...] = (
        ".tfrecord",
        ".tfrecords",
        ".tfrec",
        ".tfrecord.gz",
        ".tfrecords.gz",
        ".tfrec.gz",
        ".tfrecord.zz",
    )
    compressions: tuple[str, ...] = ("none", "gzip", "zlib")
    row_groups = False
    optional_columns = False
    cut_anywhere = False
    unforkable: str | None = None

    def sniff(self, head: bytes, tail: bytes) -> bool:
        codec = recognise(head)
        return is_framed(inflate_head(head, codec) if codec else head)

    def plan(
        self,
        size: int,
        columns: Sequence[str] | None,
        types: Mapping[str, pa.DataType],
        options: ReadOptions,
    ) -> Planning:
        """Plan the object. Its columns are those of the first records, and those that ``types``
        names."""
        if size == 0:
            return FilePlan(None, ())
        stream, deframer = Stream(size, _SAMPLE_BYTES, recognise), Deframer()
        records = Records.of([])
        faulty = False
        while not records and not deframer.broken and (block := (yield from stream.read())):
            deframer.size = stream.most_bytes
            records = deframer.feed(block)
            for _, error in deframer.faults:
                yield Fault(error, 0)
                faulty = True
        if records and deframer.broken:
            yield Fault(deframer.broken, 0)
        if not records:
            deframer.finish()
            # a compressed stream of nothing, or records of which none can be read
            return FilePlan(None, (Split(0, size),) if faulty else ())
        records = records[:_SAMPLE_RECORDS]
        try:
            found = blocks.infer(records)
        except FormatError as error:
            yield Fault(error, 0)
            records = Records.of([*filter(example.is_example, records)])
            found = blocks.infer(records)
        if columns is None and any(map(example.is_sequence, records)):
            ask = f"ask for the others with columns={list(found)}"
            raise SchemaMismatch(
                "its records are tf.train.SequenceExample, whose feature_lists are not read; "
                f"{ask if found else 'they hold nothing else'}."
            )
        found.update(types)
        if not found:
            raise SchemaMismatch("the first records hold no features, so there are no columns.")
        schema = pa.schema([(name, found[name]) for name in select(list(found), columns)])
        return FilePlan(schema, (Split(0, size),))

    def decode(self, size: int, split: Split, schema: pa.Schema, options: ReadOptions) -> Decoding:
        stream, deframer = Stream(size, options.block_bytes, recognise), Deframer()
        while not deframer.broken and (block := (yield from stream.read())):
            deframer.size = stream.most_bytes
            for part in deframer.cut(block):
                yield from _decoded(part, deframer, schema)
        deframer.finish()

    def encoder(self, schema: pa.Schema, compression: str | None = None) -> Encoder:
        return TFRecordEncoder(
            schema, choose_compression(self.name, self.compressions, compression)
        )


def _decoded(block: Buffer, deframer: Deframer, schema: pa.Schema) -> Decoded:
    first = deframer.records
    records = deframer.feed(block)
    start = 0
    for end, error in deframer.faults:
        yield from _rows(records[start:end], schema, first)
        yield Fault(error, 1)
        first += end - start + 1
        start = end
    yield from _rows(records[start:], schema, first)


def _rows(records: Records, schema: pa.Schema, first: int) -> Decoded:
    """Decode ``records``. ``first`` is the number of the first one in its object."""

    def decode(rows: range) -> pa.RecordBatch:
        return blocks.decode(records[rows.start : rows.stop], schema, first + rows.start)

    for start in range(0, len(records), _ROWS_AT_ONCE):
        rows = range(len(records))[start : start + _ROWS_AT_ONCE]
        yield from decode_undamaged(rows, decode, _halves, len)


def _halves(rows: range) -> tuple[range, range] | None:
    half = len(rows) // 2
    return (rows[:half], rows[half:]) if half else None


FORMAT: Format = TFRecord()
