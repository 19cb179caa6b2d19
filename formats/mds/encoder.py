"""Write rows as an MDS shard. The offsets come first, so the shard is built in memory."""

from __future__ import annotations

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from pipeprof.errors import SchemaMismatch
from pipeprof.formats.decompress import Deflater
from pipeprof.formats.mds.layout import NUMBERS, SIZE_BYTES
from pipeprof.formats.text_cells import to_text
from pipeprof.formats.types import check_batch, convert, format_type, is_list

_MOST_BYTES = 2**32 - 1
_NAMES = {dtype: name for name, dtype in NUMBERS.items()} | {pa.bool_(): "uint8"}
_SHAPE_WIDTHS = ("<u1", "<u2", "<u4")


class MdsEncoder:
    """Writes the samples of one shard. A null is stored as a tensor would hold it: 0, NaN, or
    empty."""

    def __init__(self, schema: pa.Schema, compression: str) -> None:
        self._schema = schema
        self._deflater = Deflater(compression)
        self._encodings = [_encoding(field) for field in schema]
        self._sizes = [_fixed_bytes(field.type) for field in schema]
        self._samples: list[bytes] = []

    def write(self, batch: pa.RecordBatch) -> bytes:
        check_batch(batch, self._schema)
        columns = list(map(_cells, self._schema.names, batch.columns))
        for row in range(batch.num_rows):
            cells = [column[row] for column in columns]
            varying = [len(cell) for cell, size in zip(cells, self._sizes, strict=True)
                       if size is None]  # fmt: skip
            self._samples.append(np.array(varying, "<u4").tobytes() + b"".join(cells))
        return b""

    def finish(self) -> bytes:
        config = orjson.dumps(
            {
                "column_encodings": self._encodings,
                "column_names": self._schema.names,
                "column_sizes": self._sizes,
                "compression": None,
                "format": "mds",
                "hashes": [],
                "size_limit": None,
                "version": 2,
            }
        )
        first = SIZE_BYTES * (2 + len(self._samples)) + len(config)
        offsets = np.cumsum([first, *map(len, self._samples)])
        if offsets[-1] > _MOST_BYTES:
            raise SchemaMismatch("a shard of MDS holds at most 4 GiB; write more shards.")
        numbers = np.array([len(self._samples), *offsets], "<u4").tobytes()
        shard = b"".join([numbers, config, *self._samples])
        return self._deflater.compress(shard, finish=True)


def _encoding(field: pa.Field) -> str:
    """Return the encoding of a column. Raises `SchemaMismatch`."""
    dtype = field.type
    if not is_list(dtype):
        known = {pa.string(): "str", pa.binary(): "bytes"} | _NAMES
        if dtype not in known:
            raise SchemaMismatch(
                f"column {field.name!r} is {format_type(dtype)}, which MDS cannot hold."
            )
        return known[dtype]
    name = _NAMES.get(dtype.value_type)
    if name is None:
        return "json"
    fixed = pa.types.is_fixed_size_list(dtype)
    return f"ndarray:{name}:{dtype.list_size}" if fixed else f"ndarray:{name}"


def _fixed_bytes(dtype: pa.DataType) -> int | None:
    """Return the bytes of each value; ``None`` where they vary."""
    if pa.types.is_fixed_size_list(dtype) and dtype.value_type in _NAMES:
        return int(dtype.list_size) * _width(dtype.value_type)
    return _width(dtype) if dtype in _NAMES else None


def _width(dtype: pa.DataType) -> int:
    return 1 if pa.types.is_boolean(dtype) else int(dtype.bit_width) // 8


def _cells(name: str, column: pa.Array) -> list[bytes]:
    """Return the bytes of each value of a column."""
    dtype = column.type
    if dtype in _NAMES:
        return _cut(_filled(column), _width(dtype))
    if not is_list(dtype):
        return [cell or b"" for cell in column.cast(pa.binary()).to_pylist()]
    if dtype.value_type not in _NAMES:  # lists of text or bytes
        texts = to_text(name, column).fill_null("null").cast(pa.large_binary())
        cells: list[bytes] = texts.to_pylist()
        return cells
    if pa.types.is_fixed_size_list(dtype):
        nothing = pa.scalar([None] * dtype.list_size, dtype)
        flat = pc.if_else(column.is_valid(), column, nothing).flatten()
        return _cut(_filled(flat), _width(dtype.value_type) * dtype.list_size)
    lists = convert(name, column, pa.list_(dtype.value_type))
    lengths = pc.list_value_length(lists).fill_null(0).to_numpy(zero_copy_only=False).tolist()
    values, width = _filled(lists.flatten()), _width(dtype.value_type)
    found, begin = [], 0
    for length in lengths:
        end = begin + length * width
        found.append(_shape(length) + values[begin:end])
        begin = end
    return found


def _filled(numbers: pa.Array) -> bytes:
    """Return the bytes of numbers, with 0 or NaN in the place of nulls."""
    dtype = numbers.type
    if pa.types.is_boolean(dtype):
        numbers, dtype = numbers.cast(pa.uint8()), pa.uint8()
    absent = float("nan") if pa.types.is_floating(dtype) else 0
    valid = numbers.is_valid().to_numpy(zero_copy_only=False)
    plain = np.full(len(numbers), absent, dtype.to_pandas_dtype())
    plain[valid] = numbers.drop_null().to_numpy(zero_copy_only=False)
    return plain.tobytes()


def _cut(data: bytes, width: int) -> list[bytes]:
    return [data[at : at + width] for at in range(0, len(data), width)]


def _shape(length: int) -> bytes:
    """Return the shape of an array of one axis, as it stands before the values."""
    code = 0 if length < 2**8 else 1 if length < 2**16 else 2
    return bytes([1 << 2 | code]) + np.array([length], _SHAPE_WIDTHS[code]).tobytes()
