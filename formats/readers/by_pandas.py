"""Decode by pandas' own parsers, those of CSV and of JSON Lines."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa

from pipeprof.formats.base import Buffer
from pipeprof.formats.readers.base import Reader, plain_bytes
from pipeprof.formats.text_cells import NULLS


class Pandas:
    """The reader; see the module."""

    name = module = "pandas"
    fork_safe = True

    def read(self, format_name: str, data: Buffer, schema: pa.Schema) -> pa.Table:
        import pandas as pd

        names, source = list(schema.names), io.BytesIO(plain_bytes(data))
        if format_name == "jsonl":
            frame = pd.read_json(source, lines=True, dtype=False)
            return pa.Table.from_pandas(frame[names], preserve_index=False)
        options: dict[str, Any] = {
            "usecols": names,
            "na_values": {field.name: _nulls(field.type) for field in schema},
            "keep_default_na": False,
        }
        try:
            types = {field.name: _numpy_type(field.type) for field in schema}
            frame = pd.read_csv(source, dtype=types, **options)
        except ValueError:  # NumPy has no null of integers
            source.seek(0)
            types = {field.name: _nullable_type(field.type) for field in schema}
            frame = pd.read_csv(source, dtype=types, **options)
        return pa.Table.from_pandas(frame[names], schema=schema, preserve_index=False)


def _nulls(dtype: pa.DataType) -> list[str]:
    if pa.types.is_string(dtype):
        return []
    return [*NULLS, *(["nan", "NaN"] if pa.types.is_floating(dtype) else [])]


def _numpy_type(dtype: pa.DataType) -> Any:
    return object if pa.types.is_string(dtype) else dtype.to_pandas_dtype()


def _nullable_type(dtype: pa.DataType) -> Any:
    if pa.types.is_string(dtype):
        return "object"
    if pa.types.is_boolean(dtype):
        return "boolean"
    if pa.types.is_floating(dtype):
        return dtype.to_pandas_dtype()
    name = str(dtype.to_pandas_dtype().__name__)
    return f"UInt{name[4:]}" if name.startswith("uint") else name.capitalize()


READER: Reader = Pandas()
