"""CSV by RFC 4180: UTF-8, commas, a header line, plain, gzip or zstd.

A plain file is cut into byte ranges; a row belongs to the range in which it begins. A compressed
stream is one split. So is a file that has a line end within quotes among its first rows. Fields are
parsed block by block, so memory holds no more than two blocks and one row.
"""

from __future__ import annotations

import csv
import io
from collections import deque
from collections.abc import Mapping, Sequence

import pyarrow as pa

from pipeprof.errors import CorruptData, FormatError
from pipeprof.formats.base import (
    PREFETCH_DEPTH,
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
    fetch,
)
from pipeprof.formats.bisect_errors import decode_undamaged
from pipeprof.formats.csv.encoder import CsvEncoder
from pipeprof.formats.csv.parser import RowParser
from pipeprof.formats.csv.rows import RowBuffer, check_begin, first_row_end, halves
from pipeprof.formats.decompress import recognise
from pipeprof.formats.lines import BOM, Window
from pipeprof.formats.stream import Stream
from pipeprof.formats.text_cells import infer
from pipeprof.formats.types import check_types, one_array, select

_SAMPLE_BYTES = 2**20
_BLOCKS = 2
"""So many blocks are given to Arrow at a time, as each call has fixed costs."""


class Csv:
    """The format; see the module."""

    name = "csv"
    suffixes: tuple[str, ...] = (".csv", ".csv.gz", ".csv.zst")
    compressions: tuple[str, ...] = ("none", "gzip", "zstd")
    row_groups = False
    optional_columns = False
    cut_anywhere = True
    unforkable: str | None = None

    def sniff(self, head: bytes, tail: bytes) -> bool:
        return False  # any text may be CSV, and none is for certain

    def plan(
        self,
        size: int,
        columns: Sequence[str] | None,
        types: Mapping[str, pa.DataType],
        options: ReadOptions,
    ) -> Planning:
        """Plan the splits. Types are inferred from the rows in the first 1 MiB, or from one longer
        row."""
        stream, buffer = Stream(size, _SAMPLE_BYTES, recognise), RowBuffer(cut=False)
        sample, header, one_line_each = b"", 0, True
        while not 0 < header < len(sample) and (block := (yield from stream.read())):
            if b"\0" in bytes(block):
                raise CorruptData("it holds NUL bytes, so it is not CSV in UTF-8.")
            buffer.push(block)
            rows, lines = buffer.take()
            sample, one_line_each = sample + rows, one_line_each and lines
            header = header or first_row_end(sample)
        if not 0 < header < len(sample):
            buffer.finish()
            rows, lines = buffer.take()
            sample, one_line_each = sample + rows, one_line_each and lines
            header = first_row_end(sample) or len(sample)
        names = _header(sample[:header])
        check_types(types, names)
        rows, chosen = sample[header:], select(names, columns)
        try:
            schema = _infer(rows, names, chosen, types)
        except FormatError as error:
            yield Fault(error, 0)
            schema = _infer(_readable(rows, names), names, chosen, types)
        if header == len(sample):
            return FilePlan(schema, ())
        step = options.split_bytes
        if stream.codec or not 0 < step < size or not one_line_each:
            return FilePlan(schema, (Split(0, size),))
        starts = [0, *(start for start in range(step, size, step) if start > header)]
        return FilePlan(
            schema,
            tuple(
                Split(start, end, ranges=((0, header),) if start else ())
                for start, end in zip(starts, [*starts[1:], size], strict=True)
            ),
        )

    def decode(self, size: int, split: Split, schema: pa.Schema, options: ReadOptions) -> Decoding:
        whole = (split.start, split.end) == (0, size)
        source: Stream | Window
        if whole:
            source = Stream(size, options.block_bytes, recognise)
        else:
            source = Window(split.start, split.end, size, options.block_bytes, check_begin)
        parser: RowParser | None = None
        if split.ranges:
            [(offset, length)] = split.ranges
            first = source.upcoming(PREFETCH_DEPTH) if isinstance(source, Window) else ()
            line = yield from fetch(offset, length, first)
            parser = RowParser(_header(bytes(line)), schema.names, split)
        buffer, more, blocks = RowBuffer(cut=not whole), True, 0
        while more:
            block = yield from source.read()
            more = len(block) > 0
            if more:
                buffer.push(block)
                blocks += 1
            else:
                buffer.finish()
            if buffer.rows and parser is None and (line := buffer.take_row()):
                parser = RowParser(_header(line), schema.names, split)
            if parser is None or not buffer.rows or (more and blocks < _BLOCKS):
                continue
            batch = parser.parse_if_whole(buffer.rows, schema)
            if batch is None:
                buffer.cut_again()
                yield from parser.parse_undamaged(b"".join(buffer.rows), schema)
            elif batch.num_rows:
                yield batch
            buffer.rows, blocks = [], 0

    def encoder(self, schema: pa.Schema, compression: str | None = None) -> Encoder:
        return CsvEncoder(schema, choose_compression(self.name, self.compressions, compression))


def _header(line: bytes) -> list[str]:
    """Return the names of the columns. Raises `CorruptData`, `SchemaMismatch`."""
    line = line.removeprefix(BOM)
    try:
        text = line.decode("utf-8").rstrip("\r\n")
        rows = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    except (UnicodeDecodeError, csv.Error) as error:
        raise CorruptData(f"its first line is not a CSV header in UTF-8 ({error}).") from None
    if len(rows) != 1 or not any(rows[0]):
        raise CorruptData("it does not begin with a header line of column names.")
    return select(rows[0], None)


def _infer(
    rows: bytes, names: list[str], chosen: list[str], types: Mapping[str, pa.DataType]
) -> pa.Schema:
    """Return the types of ``chosen``: as given, else inferred from the first fields."""
    asked = [name for name in chosen if name not in types]
    found = dict(types)
    if asked:
        parser = RowParser(names, asked, Split(0, 0))
        text = parser.read(rows, dict.fromkeys(asked, pa.string()))
        guess = parser.read(rows, None)
        for name in asked:
            found[name] = infer(one_array(text.column(name)), guess.column(name).type)
    return pa.schema([(name, found[name]) for name in chosen])


def _readable(rows: bytes, names: list[str]) -> bytes:
    """Return the rows that are UTF-8 and have a field for each name."""
    parser, good = RowParser(names, names, Split(0, 0)), list[Buffer]()

    def decode(part: Buffer) -> pa.RecordBatch:
        parser.read(part, dict.fromkeys(names, pa.string()))
        good.append(part)
        return pa.record_batch([], [])

    whole: Buffer = rows
    deque(decode_undamaged(whole, decode, halves, len), maxlen=0)
    return b"".join(good)


FORMAT: Format = Csv()
