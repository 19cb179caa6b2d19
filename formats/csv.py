"""CSV by RFC 4180: UTF-8, commas, a header line, plain or gzip.

A plain file is cut into byte ranges; a row belongs to the range in which it begins. A file with a
line end within quotes among its first rows, and a gzip stream, is one split. Fields are parsed by
Arrow, block by block, so memory stays at a block and one row.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from pipeprof.errors import CorruptData, FormatError, SchemaMismatch
from pipeprof.formats.base import (
    Decoding,
    Encoder,
    FilePlan,
    Format,
    Planning,
    ReadOptions,
    Split,
    choose_compression,
    fetch,
)
from pipeprof.formats.csv_rows import RowBuffer, Window, first_row_end, may_be_cut
from pipeprof.formats.csv_text import NULLS, from_text, infer, quoted, read_type, to_text
from pipeprof.formats.inflate import Codec, deflater, is_gzip
from pipeprof.formats.stream import Stream
from pipeprof.formats.types import (
    check_batch,
    check_types,
    first_line,
    format_type,
    select,
)

_SAMPLE_BYTES = 2**20
_BOM = b"\xef\xbb\xbf"
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
            if b"\0" in block:
                raise CorruptData("it holds NUL bytes, so it is not CSV in UTF-8.")
            sample += buffer.push(block)
            header = header or first_row_end(sample)
        if not 0 < header < len(sample):
            sample += buffer.rest()
            header = first_row_end(sample) or len(sample)
        names = _header(sample[:header])
        check_types(types, names)
        schema = _infer(sample[header:], names, select(names, columns), types)
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
            line = yield from fetch(offset, length)
            reader = Reader(_header(line), schema.names, split)
        buffer, more = RowBuffer(cut=not whole), True
        while more:
            block = yield from source.read()
            more = block != b""
            rows = buffer.push(block) if more else buffer.rest()
            if rows and reader is None:
                header = first_row_end(rows) or len(rows)
                reader = Reader(_header(rows[:header]), schema.names, split)
                rows = rows[header:]
            if rows and reader is not None:
                batch = reader.parse(rows, schema)
                if batch.num_rows:
                    yield batch

    def encoder(self, schema: pa.Schema, compression: str | None = None) -> Encoder:
        return _Encoder(schema, choose_compression(self.name, self.compressions, compression))


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


def _one_chunk(column: pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.nulls(0, column.type)


class Reader:
    """Rows of one split by Arrow, a block at a time; knows where it is when something is wrong."""

    def __init__(self, names: list[str], chosen: Sequence[str], split: Split) -> None:
        self._names = names
        self._chosen = select(names, chosen)
        self._start = split.start
        self._rows = 0
        """Parsed before this block."""

    def parse(self, rows: bytes, schema: pa.Schema) -> pa.RecordBatch:
        """Whole rows → ``schema``. Raises `CorruptData`, `SchemaMismatch`."""
        table = self.read(rows, {field.name: read_type(field.type) for field in schema})
        self._rows += table.num_rows
        columns = [
            from_text(field.name, _one_chunk(column), field.type)
            for field, column in zip(schema, table.columns, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, schema=schema)

    def read(self, rows: bytes, types: Mapping[str, pa.DataType] | None) -> pa.Table:
        """Whole rows → Arrow's columns of ``types``, or of its own guess.

        Raises `CorruptData`, `SchemaMismatch`.
        """
        blank_rows = len(self._names) == 1  # an empty line is then a row of one empty field
        if not rows or not (blank_rows or rows.strip(b"\r\n")):
            return pa.table({name: pa.nulls(0, (types or {}).get(name)) for name in self._chosen})
        try:
            return pyarrow.csv.read_csv(
                pa.BufferReader(rows),
                read_options=pyarrow.csv.ReadOptions(
                    column_names=self._names, use_threads=False, block_size=len(rows) + 1
                ),
                parse_options=pyarrow.csv.ParseOptions(
                    newlines_in_values=True, ignore_empty_lines=not blank_rows
                ),
                convert_options=pyarrow.csv.ConvertOptions(
                    column_types=types,
                    include_columns=self._chosen,
                    null_values=list(NULLS),
                    timestamp_parsers=[],
                ),
            )
        except (pa.ArrowException, ValueError) as error:
            raise self._explain(str(error), types or {}) from None

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


class _Encoder:
    def __init__(self, schema: pa.Schema, compression: str) -> None:
        self._schema = schema
        self._deflater = deflater("gzip") if compression == "gzip" else None
        names = quoted(pa.array(schema.names, pa.large_string()))
        self._pending = ",".join(names.to_pylist()).encode() + b"\n"

    def write(self, batch: pa.RecordBatch) -> bytes:
        check_batch(batch, self._schema)
        data, self._pending = self._pending + _lines(batch), b""
        if b"\0" in data:
            raise SchemaMismatch(
                "a text holds a NUL character, which CSV cannot hold; make its column binary."
            )
        return bytes(self._deflater.compress(data)) if self._deflater else data

    def finish(self) -> bytes:
        if self._deflater is None:
            return self._pending
        return bytes(self._deflater.compress(self._pending) + self._deflater.flush())


def _lines(batch: pa.RecordBatch) -> bytes:
    """Rows as text: each with its line end, so that the column's bytes are the file's."""
    if not batch.num_rows:
        return b""
    fields = [
        quoted(to_text(field.name, column))
        for field, column in zip(batch.schema, batch.columns, strict=True)
    ]
    comma, line_end, nothing = (pa.scalar(text, pa.large_string()) for text in (",", "\n", ""))
    rows = pc.binary_join_element_wise(*fields, comma)
    _, offsets, text = pc.binary_join_element_wise(rows, line_end, nothing).buffers()
    end = int(np.frombuffer(offsets, np.int64)[batch.num_rows])
    return bytes(memoryview(text)[:end])


FORMAT: Format = Csv()
