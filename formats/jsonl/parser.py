"""Parse lines of JSON with pyarrow, and say which line and which column is refused."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.json

from pipeprof.errors import CorruptData, FormatError, SchemaMismatch
from pipeprof.formats.base import Fault
from pipeprof.formats.bisect_errors import decode_undamaged
from pipeprof.formats.jsonl.columns import from_json, read_type
from pipeprof.formats.lines import last_newline, past_line_end
from pipeprof.formats.types import first_line, format_type, one_array

_CHANGED = re.compile(r"Column\((.*)\) changed from (\w+) to (\w+) in row (\d+)")
_ROW = re.compile(r"(?:JSON parse error: )?(.*?) in row (\d+)", re.S)


class LineParser:
    """Parses the lines of one split block by block, and counts them so that errors can name a
    line."""

    def __init__(self, schema: pa.Schema, start: int) -> None:
        self._schema, self._start = schema, start
        self._lines = 0
        """Lines of earlier blocks."""

    def parse(self, lines: bytes) -> Iterator[Fault | pa.RecordBatch]:
        """Parse whole lines into record batches, with a fault for lines that are damaged."""
        yield from decode_undamaged(lines, self._parse, halves, self._lose)

    def _parse(self, lines: bytes) -> pa.RecordBatch:
        """Raises `CorruptData`, `SchemaMismatch`."""
        ends = lines.count(b"\n")
        if lines.isspace():
            self._lines += ends
            return pa.RecordBatch.from_pylist([], self._schema)
        try:
            table = _read(lines, self._schema)
        except (pa.ArrowException, ValueError) as error:
            raise self._explain(str(error), lines) from None
        if table.num_rows != ends and table.num_rows != _rows(lines):
            raise CorruptData(
                f"{self._where()}, {_rows(lines)} lines hold {table.num_rows} rows; each row must "
                "be a line of its own."
            )
        arrays = [
            from_json(field.name, one_array(table.column(field.name)), field.type)
            for field in self._schema
        ]
        batch = pa.RecordBatch.from_arrays(arrays, schema=self._schema)
        _check_text(batch)
        self._lines += ends
        return batch

    def _lose(self, lines: bytes) -> int:
        """Count the lines that are left out, and return how many rows they are."""
        self._lines += lines.count(b"\n")
        return _rows(lines)

    def _where(self) -> str:
        return f"from {self._line(0)} on"

    def _explain(self, error: str, lines: bytes) -> FormatError:
        if match := _CHANGED.search(error):
            path, _, found, row = match.groups()
            name = path[1:].partition("/")[0]
            where = f"{self._line(int(row))}, column {name!r}" if name else self._line(int(row))
            if name not in self._schema.names:
                return CorruptData(f"{where}: {_a(found)} is no object of columns.")
            return SchemaMismatch(
                f"{where}: {_a(found)} where {format_type(self._schema.field(name).type)} was "
                "asked for or inferred; name another type with types=…, or ask for other columns."
            )
        if match := _ROW.search(error):
            return CorruptData(f"{self._line(int(match[2]))}: {first_line(match[1])}.")
        for field in self._schema:  # Arrow does not name the column of a value that does not fit
            refusal = _refusal(lines, field)
            if refusal is not None:
                return SchemaMismatch(
                    f"{self._where()}, column {field.name!r}: {refusal}, which "
                    f"was asked for or inferred; name another with types={{{field.name!r}: …}}."
                )
        return CorruptData(f"{self._where()}, lines cannot be parsed: {first_line(error)}.")

    def _line(self, row: int) -> str:
        after = f" after byte {self._start}" if self._start else ""
        return f"line {self._lines + row + 1}{after}"


def halves(lines: bytes) -> tuple[bytes, bytes] | None:
    """Return lines as two parts of about the same size; ``None`` for a single line."""
    end = last_newline(lines, len(lines) // 2) + 1 or past_line_end(lines, 0)
    return (lines[:end], lines[end:]) if 0 < end < len(lines) else None


def _read(lines: bytes, schema: pa.Schema) -> pa.Table:
    """Return the columns of ``schema``, as `read_type`; others are ignored."""
    explicit = pa.schema([(field.name, read_type(field.type)) for field in schema])
    return pyarrow.json.read_json(
        pa.BufferReader(lines),
        read_options=pyarrow.json.ReadOptions(use_threads=False, block_size=len(lines) + 1),
        parse_options=pyarrow.json.ParseOptions(
            explicit_schema=explicit, unexpected_field_behavior="ignore"
        ),
    )


def _refusal(lines: bytes, field: pa.Field) -> str | None:
    """Return why this column cannot be read; ``None`` if it can."""
    try:
        _read(lines, pa.schema([field]))
    except (pa.ArrowException, ValueError) as error:
        return first_line(error)
    return None


def _rows(lines: bytes) -> int:
    """Return the number of lines that are not blank."""
    return sum(1 for line in lines.split(b"\n") if line and not line.isspace())


def _check_text(batch: pa.RecordBatch) -> None:
    """Raise `CorruptData` for text that is not UTF-8, which Arrow does not look at."""
    try:
        batch.validate(full=True)
    except pa.ArrowException as error:
        raise CorruptData(f"its text is not UTF-8 ({first_line(error)}).") from None


def _a(kind: str) -> str:
    return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"
