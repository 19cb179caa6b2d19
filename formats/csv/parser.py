"""Parse whole rows of CSV with pyarrow, and say where in the file a refused row is."""

from __future__ import annotations

import io
import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from secrets import token_hex
from typing import Any

import pyarrow as pa
import pyarrow.csv

from pipeprof.errors import CorruptData, FormatError, SchemaMismatch
from pipeprof.formats.base import Buffer, Fault, Split
from pipeprof.formats.bisect_errors import decode_undamaged
from pipeprof.formats.csv.rows import halves
from pipeprof.formats.lines import BOM
from pipeprof.formats.text_cells import NULLS, from_text, read_type
from pipeprof.formats.types import first_line, format_type, one_array, select

_PARSED_AT_ONCE = 2**19
"""Bytes that Arrow splits into fields, and then converts. Between the two steps they stay in the
processor's cache."""
_MARK = f",{token_hex()}"
"""The first field, in quotes, of a row that is put behind rows that may end within quotes.

Arrow takes an open quote at the end of its input for text, and says nothing. If one is open, the
mark's first quote closes it, its comma begins a new field, and the row has too many.
"""
_NOT_BLANK = re.compile(rb"[\r\n]*[^\r\n]")
_CARRIAGE_RETURN = 13
_VALUE_ERROR = re.compile(
    r"In CSV column #(\d+): Row #(\d+): CSV conversion error to .*?: (.*)", re.S
)
_ROW_ERROR = re.compile(r"CSV parse error: Row #(\d+): (.*)", re.S)


@lru_cache
def _options(
    names: tuple[str, ...], wanted: tuple[tuple[str, pa.DataType | None], ...], block_bytes: int
) -> dict[str, Any]:
    """Return the options of ``read_csv``. To make them for 200 columns takes 0.3 ms."""
    return {
        "read_options": pyarrow.csv.ReadOptions(
            column_names=list(names), use_threads=False, block_size=block_bytes
        ),
        "parse_options": pyarrow.csv.ParseOptions(
            newlines_in_values=True, ignore_empty_lines=len(names) > 1
        ),
        "convert_options": pyarrow.csv.ConvertOptions(
            column_types={name: dtype for name, dtype in wanted if dtype is not None},
            include_columns=[name for name, _ in wanted],
            null_values=[*NULLS, _MARK],
            timestamp_parsers=[],
        ),
    }


def _types(schema: pa.Schema) -> dict[str, pa.DataType]:
    """Return the types to ask Arrow for."""
    return {field.name: read_type(field.type) for field in schema}


def _begins_with_bom(pieces: Sequence[Buffer]) -> bool:
    return b"".join(bytes(each[: len(BOM)]) for each in pieces).startswith(BOM)


class Pieces(io.RawIOBase):
    """A file of consecutive pieces, which are not copied."""

    def __init__(self, pieces: Sequence[Buffer]) -> None:
        self._pieces = deque(memoryview(each) for each in pieces if len(each))

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> Any:
        """Return the next ``size`` bytes; fewer at the end. Only what lies in two pieces is copied.

        They do not end with a carriage return if they can be shorter: Arrow drops a line feed that
        follows one at the begin of a block, even within quotes.
        """
        parts = list[memoryview]()
        while size > 0 and self._pieces:
            piece = self._pieces.popleft()
            parts.append(piece[:size])
            if size < len(piece):
                self._pieces.appendleft(piece[size:])
            size -= len(parts[-1])
        block = parts[0] if len(parts) == 1 else memoryview(b"".join(parts))
        end = len(block)
        while end > 1 and block[end - 1] == _CARRIAGE_RETURN:
            end -= 1
        if end < len(block):
            self._pieces.appendleft(block[end:])
        return block[:end]


class RowParser:
    """Parses the rows of one split block by block, and counts them so that errors can name a
    row."""

    def __init__(self, names: list[str], chosen: Sequence[str], split: Split) -> None:
        self._names = names
        self._chosen = select(names, chosen)
        self._start = split.start
        self._rows = 0
        """Rows of earlier blocks."""

    def parse(self, rows: Buffer, schema: pa.Schema) -> pa.RecordBatch:
        """Parse whole rows into columns of ``schema``. Raises `CorruptData`, `SchemaMismatch`."""
        return self._batch(self.read(rows, _types(schema)), schema)

    def parse_if_whole(self, pieces: Sequence[Buffer], schema: pa.Schema) -> pa.RecordBatch | None:
        """Parse rows that come in pieces. ``None`` if the last one does not end with them, or if
        one of them cannot be parsed."""
        if _begins_with_bom(pieces):
            pieces = [BOM, *pieces]
        last = f'"{_MARK}"{"," * (len(self._names) - 1)}\n'.encode()
        try:
            table = self._read([*pieces, last], _types(schema), _PARSED_AT_ONCE)
            return self._batch(table.slice(0, table.num_rows - 1), schema)
        except (pa.ArrowException, ValueError, FormatError):
            return None

    def _batch(self, table: pa.Table, schema: pa.Schema) -> pa.RecordBatch:
        arrays = [
            one_array(from_text(field.name, table[field.name], field.type)) for field in schema
        ]
        self._rows += table.num_rows
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def parse_undamaged(self, rows: Buffer, schema: pa.Schema) -> Iterator[Fault | pa.RecordBatch]:
        """Parse whole rows into record batches, with a fault for rows that cannot be parsed."""
        yield from decode_undamaged(rows, lambda part: self.parse(part, schema), halves, self._lose)

    def _lose(self, rows: Buffer) -> int | None:
        """Count the rows that are left out, and return their number."""
        lost = 1 if halves(rows) is None else None
        self._rows += lost or bytes(rows).count(b"\n")
        return lost

    def read(self, rows: Buffer, types: Mapping[str, pa.DataType] | None) -> pa.Table:
        """Parse whole rows into columns of ``types``, or of types that Arrow guesses. Raises
        `CorruptData`, `SchemaMismatch`."""
        if rows[:3] == BOM:  # within the file it is text, but Arrow drops the first one
            rows = BOM + bytes(rows)
        blank_rows = len(self._names) == 1  # an empty line is then a row of one empty field
        if not len(rows) or not (blank_rows or _NOT_BLANK.match(rows)):
            nothing = types or dict.fromkeys(self._chosen)
            return pa.table({name: pa.nulls(0, dtype) for name, dtype in nothing.items()})
        # Arrow guesses types from the first block only, so make it one block
        block_bytes = _PARSED_AT_ONCE if types else len(rows) + 1
        while True:
            try:
                return self._read([rows], types, block_bytes)
            except (pa.ArrowException, ValueError) as error:
                if "straddling" not in str(error) or block_bytes > len(rows):
                    raise self._explain(str(error), types or {}) from None
            block_bytes = len(rows) + 1  # a row is longer than a block

    def _read(
        self,
        rows: Sequence[Buffer],
        types: Mapping[str, pa.DataType] | None,
        block_bytes: int,
    ) -> pa.Table:
        wanted = tuple((types or dict.fromkeys(self._chosen)).items())
        source = pa.PythonFile(Pieces(rows), mode="r")
        return pyarrow.csv.read_csv(source, **_options(tuple(self._names), wanted, block_bytes))

    def _explain(self, error: str, types: Mapping[str, pa.DataType]) -> FormatError:
        after = f"byte {self._start}" if self._start else "the header"
        # a cut within quotes gives rows of another shape
        hint = " If its fields hold line ends, open it with split_bytes=0." if self._start else ""
        if match := _VALUE_ERROR.match(error):
            name = self._names[int(match[1])]
            where = f"row {self._rows + int(match[2])} after {after}, column {name!r}"
            if "UTF8" in match[3]:
                return CorruptData(f"{where}: it is not text in UTF-8; convert the file first.")
            return SchemaMismatch(
                f"{where}: {first_line(match[3])} for {format_type(types[name])}, the type that "
                f"was asked for or inferred; name another with types={{{name!r}: 'string'}}."
                f"{hint}"
            )
        if match := _ROW_ERROR.match(error):
            row = self._rows + int(match[1])
            return CorruptData(f"row {row} after {after}: {first_line(match[2])}.{hint}")
        return CorruptData(f"rows after {after} cannot be parsed: {first_line(error)}.{hint}")
