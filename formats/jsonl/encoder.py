"""Write rows as JSON Lines: one object a line, bytes as base64."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

from pipeprof.formats.base64_text import to_base64
from pipeprof.formats.decompress import Deflater
from pipeprof.formats.types import check_batch, is_list


class JsonlEncoder:
    """Writes an object a row, with all columns."""

    def __init__(self, schema: pa.Schema, compression: str) -> None:
        self._schema = schema
        self._deflater = Deflater(compression)

    def write(self, batch: pa.RecordBatch) -> bytes:
        check_batch(batch, self._schema)
        columns = {
            name: _shortest(column)
            for name, column in zip(self._schema.names, batch.columns, strict=True)
        }
        dumps = _with_infinity if any(map(_is_infinite, columns.values())) else _finite
        rows = pa.table(columns).to_pylist() if columns else []
        return self._deflater.compress(b"".join(dumps(row) for row in rows))

    def finish(self) -> bytes:
        return self._deflater.compress(b"", finish=True)


def _finite(row: dict[str, Any]) -> bytes:
    """NaN becomes null."""
    return orjson.dumps(row, default=to_base64, option=orjson.OPT_APPEND_NEWLINE)


def _with_infinity(row: dict[str, Any]) -> bytes:
    """Write ``Infinity`` and ``NaN``, as Python and JavaScript name them; JSON has no such
    number."""
    text = json.dumps(row, default=to_base64, ensure_ascii=False, separators=(",", ":"))
    return text.encode() + b"\n"


def _shortest(column: pa.Array) -> pa.Array:
    """Return the column such that float32 and float16 are written as the fewest digits: 0.1."""
    value = _value_type(column.type)
    if not (pa.types.is_float32(value) or pa.types.is_float16(value)):
        return column
    for dtype in (pa.float32(), pa.string(), pa.float64()):
        column = column.cast(_like(column.type, dtype))
    return column


def _like(dtype: pa.DataType, value: pa.DataType) -> pa.DataType:
    """Return the type with values of type ``value``."""
    if not is_list(dtype):
        return value
    return pa.list_(value, dtype.list_size if pa.types.is_fixed_size_list(dtype) else -1)


def _value_type(dtype: pa.DataType) -> pa.DataType:
    return dtype.value_type if is_list(dtype) else dtype


def _is_infinite(column: pa.Array) -> bool:
    if not pa.types.is_float64(_value_type(column.type)):
        return False
    values = column.flatten() if is_list(column.type) else column
    return bool(np.isinf(values.to_numpy(zero_copy_only=False)).any())
