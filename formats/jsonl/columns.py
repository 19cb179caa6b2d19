"""The columns of JSON Lines: found in the first lines, and read as types that JSON lacks."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from pipeprof.errors import CorruptData, SchemaMismatch
from pipeprof.formats.base64_text import from_base64
from pipeprof.formats.types import convert, first_line, format_type, is_list

Row = dict[str, Any]


def parse_row(line: bytes, number: int) -> Row:
    """Return the object in a line. Raises `CorruptData`."""
    try:
        row = json.loads(line.decode("utf-8"))
        if b"\\ud" in line.lower():  # half of a pair of surrogates is no text
            json.dumps(row, ensure_ascii=False).encode()
    except UnicodeError:
        raise CorruptData(f"line {number} is not text in UTF-8.") from None
    except (ValueError, RecursionError) as error:
        raise CorruptData(
            f"line {number} is not JSON ({first_line(error)}). Each row must be a line of its own."
        ) from None
    if not isinstance(row, dict):
        raise CorruptData(
            f"line {number} holds {_KINDS.get(type(row), 'a number')}, not an object of columns."
        )
    return row


_KINDS = {list: "an array", str: "a text", bool: "a truth value", type(None): "null"}


def infer_schema(
    rows: Sequence[Row], columns: Sequence[str] | None, types: Mapping[str, pa.DataType]
) -> pa.Schema:
    """Return all columns of ``rows``, of ``types`` or of inferred ones. One that is not of a single
    type raises `SchemaMismatch` where ``columns`` asks for it, and else is null."""
    names = dict.fromkeys(name for row in rows for name in row)
    names |= dict.fromkeys(name for name in columns or () if name in types)
    fields = list[pa.Field]()
    for name in names:
        try:
            dtype = types[name] if name in types else _infer([row.get(name) for row in rows])
        except (pa.ArrowException, OverflowError, ValueError, RecursionError) as error:
            if columns is None or name in columns:
                raise SchemaMismatch(
                    f"column {name!r} is not of one type in the first {len(rows)} lines "
                    f"({first_line(error)}); ask for other columns with columns=…"
                ) from None
            dtype = pa.null()
        fields.append(pa.field(name, dtype))
    return pa.schema(fields)


def _infer(values: Sequence[Any]) -> pa.DataType:
    try:
        return _known(pa.array(values).type)
    except OverflowError:
        pa.array(values, pa.uint64())
        return pa.uint64()


def _known(guess: pa.DataType) -> pa.DataType:
    """Return the type that Arrow's guess at Python values stands for."""
    if pa.types.is_list(guess):
        empty = pa.types.is_null(guess.value_type)
        return pa.list_(pa.int64() if empty else _known(guess.value_type))
    if pa.types.is_null(guess):
        return pa.string()
    return pa.float32() if pa.types.is_float64(guess) else guess


def read_type(dtype: pa.DataType) -> pa.DataType:
    """Return the type to ask Arrow's reader for; `from_json` converts it to ``dtype``."""
    if is_list(dtype):
        return pa.list_(read_type(dtype.value_type))
    if pa.types.is_binary(dtype):
        return pa.string()
    return pa.float32() if pa.types.is_float16(dtype) else dtype


def from_json(column: str, read: pa.Array, dtype: pa.DataType) -> pa.Array:
    """Convert a column that Arrow read as `read_type` to ``dtype``. Raises `SchemaMismatch`."""
    if read.type == dtype:
        return read
    if pa.types.is_binary(dtype):
        return pa.array([_decoded(column, cell) for cell in read.to_pylist()], dtype)
    if is_list(dtype) and pa.types.is_binary(dtype.value_type):
        values = from_json(column, read.values, dtype.value_type)
        read = pa.ListArray.from_arrays(read.offsets, values, mask=read.is_null())
    return convert(column, read, dtype)


def _decoded(column: str, text: str | None) -> bytes | None:
    try:
        return None if text is None else from_base64(text)
    except ValueError as error:
        raise SchemaMismatch(
            f"column {column!r} holds text that is not base64 ({error}), so it cannot be "
            f"{format_type(pa.binary())}; read it as string."
        ) from None
