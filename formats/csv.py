"""CSV by RFC 4180: UTF-8, commas, a header line, plain or gzip.

A plain file is cut into byte ranges; a row belongs to the range in which it begins. A file with a
line end within quotes among its first rows, and a gzip stream, is one split. Fields are parsed by
Arrow, block by block, so memory stays at a block and one row.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.csv

from pipeprof.errors import CorruptData, FormatError, SchemaMismatch
from pipeprof.formats.base import (
    AHEAD,
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
from pipeprof.formats.csv_encoder import CsvEncoder
from pipeprof.formats.csv_rows import (
    RowBuffer,
    Window,
    first_row_end,
    halves,
    has_quotes,
    may_be_cut,
)
from pipeprof.formats.csv_text import NULLS, from_text, infer, read_type
from pipeprof.formats.inflate import Codec, is_gzip
from pipeprof.formats.salvage import salvaged
from pipeprof.formats.stream import Stream
from pipeprof.formats.types import (
    check_types,
    first_line,
    format_type,
    select,
)

_SAMPLE_BYTES = 2**20
_PARSED_AT_ONCE = 2**20
"""Bytes that Arrow splits, then converts: they stay in the processor's cache in between."""
_BOM = b"\xef\xbb\xbf"
_SOMETHING = re.compile(rb"[\r\n]*[^\r\n]")
_VALUE_ERROR = re.compile(
    r"In CSV column #(\d+): Row #(\d+): CSV conversion error to .*?: (.*)", re.S
)
_ROW_ERROR = re.compile(r"CSV parse error: Row #(\d+): (.*)", re.S)


def recognise(head: bytes) -> Codec | None:
    return "gzip" if is_gzip(head) else None


class Csv:
    """See the module."""

    name = "csv"
    suffixes: tuple[str, ...] = (".csv", ".csv.gz")
    compressions: tuple[str, ...] = ("none", "gzip")

    def sniff(self, head: bytes, tail: bytes) -> bool:
        return False  # any text may be CSV, and none is for certain

    def plan(
        self,
        size: int,
        columns: Sequence[str] | None,
        types: Mapping[str, pa.DataType],
        options: ReadOptions,
    ) -> Planning:
        """Types are inferred from the first rows: those in 1 MiB, or one."""
        stream, buffer = Stream(size, _SAMPLE_BYTES, recognise), RowBuffer(cut=False)
        sample, header = b"", 0
        while not 0 < header < len(sample) and (block := (yield from stream.read())):
            if b"\0" in bytes(block):
                raise CorruptData("it holds NUL bytes, so it is not CSV in UTF-8.")
            sample += buffer.push(block)
            header = header or first_row_end(sample)
        if not 0 < header < len(sample):
            sample += buffer.rest()
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
        if stream.codec or not 0 < step < size or not may_be_cut(sample):
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
            source = Window(split.start, split.end, size, options.block_bytes)
        reader: Reader | None = None
        if split.ranges:
            [(offset, length)] = split.ranges
            first = source.upcoming(AHEAD) if isinstance(source, Window) else ()
            line = yield from fetch(offset, length, first)
            reader = Reader(_header(line), schema.names, split)
        buffer, more = RowBuffer(cut=not whole), True
        while more:
            block = yield from source.read()
            more = len(block) > 0
            rows = buffer.push(block) if more else buffer.rest()
            if len(rows) and reader is None:
                header = first_row_end(rows) or len(rows)
                reader = Reader(_header(bytes(rows[:header])), schema.names, split)
                rows = memoryview(rows)[header:]
            if len(rows) and reader is not None:
                yield from reader.parse_what_can_be(rows, schema)

    def encoder(self, schema: pa.Schema, compression: str | None = None) -> Encoder:
        return CsvEncoder(schema, choose_compression(self.name, self.compressions, compression))


def _header(line: bytes) -> list[str]:
    """Column names. Raises `CorruptData`, `SchemaMismatch`."""
    line = line.removeprefix(_BOM)
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
    """The types of ``chosen``: as told, else as their first fields look."""
    asked = [name for name in chosen if name not in types]
    found = dict(types)
    if asked:
        reader = Reader(names, asked, Split(0, 0))
        text = reader.read(rows, dict.fromkeys(asked, pa.string()))
        guess = reader.read(rows, None)
        for name in asked:
            found[name] = infer(_one_chunk(text.column(name)), guess.column(name).type)
    return pa.schema([(name, found[name]) for name in chosen])


def _readable(rows: bytes, names: list[str]) -> bytes:
    """Those of ``rows`` that have a field for each name, in UTF-8."""
    reader, good = Reader(names, names, Split(0, 0)), []

    def decode(part: bytes) -> pa.RecordBatch:
        reader.read(part, dict.fromkeys(names, pa.string()))
        good.append(part)
        return pa.record_batch([], [])

    try:
        decode(rows)
    except FormatError as error:
        for _ in salvaged(rows, error, decode, halves, len):
            pass
    return b"".join(good)


def _one_chunk(column: pa.ChunkedArray) -> pa.Array:
    if column.num_chunks == 1:
        return column.chunk(0)  # as it is: to concatenate one copies it
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.nulls(0, column.type)


class Reader:
    """Rows of one split by Arrow, a block at a time; knows where it is when something is wrong."""

    def __init__(self, names: list[str], chosen: Sequence[str], split: Split) -> None:
        self._names = names
        self._chosen = select(names, chosen)
        self._start = split.start
        self._rows = 0
        """Parsed before this block."""

    def parse(self, rows: Buffer, schema: pa.Schema) -> pa.RecordBatch:
        """Whole rows → ``schema``. Raises `CorruptData`, `SchemaMismatch`."""
        table = self.read(rows, {field.name: read_type(field.type) for field in schema})
        self._rows += table.num_rows
        columns = [
            _one_chunk(from_text(field.name, column, field.type))
            for field, column in zip(schema, table.columns, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, schema=schema)

    def parse_what_can_be(
        self, rows: Buffer, schema: pa.Schema
    ) -> Iterator[Fault | pa.RecordBatch]:
        """Whole rows → a batch; or batches, and faults for the rows that cannot be in one."""
        try:
            batch = self.parse(rows, schema)
            if batch.num_rows:
                yield batch
        except FormatError as error:
            yield from salvaged(
                bytes(rows), error, lambda part: self.parse(part, schema), halves, self._lose
            )

    def _lose(self, rows: bytes) -> int | None:
        """How many rows these are that were not parsed."""
        lost = 1 if halves(rows) is None else None
        self._rows += lost or rows.count(b"\n")
        return lost

    def read(self, rows: Buffer, types: Mapping[str, pa.DataType] | None) -> pa.Table:
        """Whole rows → Arrow's columns of ``types``, or of its own guess.

        Raises `CorruptData`, `SchemaMismatch`.
        """
        if rows[:3] == _BOM:  # of a block it is text, and Arrow would take the first one off
            rows = _BOM + bytes(rows)
        blank_rows = len(self._names) == 1  # an empty line is then a row of one empty field
        if not len(rows) or not (blank_rows or _SOMETHING.match(rows)):
            return pa.table({name: pa.nulls(0, (types or {}).get(name)) for name in self._chosen})
        try:
            # what Arrow guesses, it must guess from all rows
            return self._read(rows, types, _PARSED_AT_ONCE if types else len(rows) + 1)
        except (pa.ArrowException, ValueError) as error:
            if "straddling" not in str(error):
                raise self._explain(str(error), types or {}) from None
        try:  # a row of more than was parsed at once
            return self._read(rows, types, len(rows) + 1)
        except (pa.ArrowException, ValueError) as error:
            raise self._explain(str(error), types or {}) from None

    def _read(
        self, rows: Buffer, types: Mapping[str, pa.DataType] | None, block_bytes: int
    ) -> pa.Table:
        return pyarrow.csv.read_csv(
            pa.BufferReader(rows),
            read_options=pyarrow.csv.ReadOptions(
                column_names=self._names, use_threads=False, block_size=block_bytes
            ),
            parse_options=pyarrow.csv.ParseOptions(
                newlines_in_values=has_quotes(rows), ignore_empty_lines=len(self._names) > 1
            ),
            convert_options=pyarrow.csv.ConvertOptions(
                column_types=types,
                include_columns=self._chosen,
                null_values=list(NULLS),
                timestamp_parsers=[],
            ),
        )

    def _explain(self, error: str, types: Mapping[str, pa.DataType]) -> FormatError:
        after = f"byte {self._start}" if self._start else "the header"
        # a cut within quotes shows as rows of another shape
        hint = " If its fields hold line ends, open it with split_bytes=0." if self._start else ""
        if match := _VALUE_ERROR.match(error):
            name = self._names[int(match[1])]
            where = f"row {self._rows + int(match[2])} after {after}, column {name!r}"
            if "UTF8" in match[3]:
                return CorruptData(f"{where}: it is not text in UTF-8; convert the file first.")
            return SchemaMismatch(
                f"{where}: {first_line(match[3])} for {format_type(types[name])}, the type that "
                f"was asked for or seen first; name another with types={{{name!r}: 'string'}}."
                f"{hint}"
            )
        if match := _ROW_ERROR.match(error):
            row = self._rows + int(match[1])
            return CorruptData(f"row {row} after {after}: {first_line(match[2])}.{hint}")
        return CorruptData(f"rows after {after} cannot be parsed: {first_line(error)}.{hint}")


FORMAT: Format = Csv()
