"""Turn the bytes of many MDS samples into columns at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from pipeprof.errors import CorruptData
from pipeprof.formats.base import Buffer
from pipeprof.formats.gather import MOST_BYTES, Places, binary_array, gathered, unaligned
from pipeprof.formats.mds.layout import NUMBERS, SIZE_BYTES, StoredColumn
from pipeprof.formats.text_cells import parse_bytes
from pipeprof.formats.types import convert


def to_batch(
    data: Buffer, offsets: Places, columns: Sequence[StoredColumn], schema: pa.Schema
) -> pa.RecordBatch:
    """Return the columns of ``schema`` of some samples.

    Args:
        data: A buffer that holds the samples.
        offsets: Where in it each begins, and where the last one ends. [samples + 1]
        columns: All columns of the shard.
        schema: Columns to return, with the types to convert them to.

    Raises:
        CorruptData: The sizes of a sample do not fit its bytes.
        SchemaMismatch: A value cannot be converted.
    """
    places = _places(data, offsets, columns)
    stored = {column.name: column for column in columns}
    if not stored.keys() >= set(schema.names):
        raise CorruptData("its columns changed while it was read.")
    arrays = [
        convert(field.name, _values(data, stored[field.name], *places[field.name], field.type),
                field.type)
        for field in schema
    ]  # fmt: skip
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _places(
    data: Buffer, offsets: Places, columns: Sequence[StoredColumn]
) -> Mapping[str, tuple[Places, Places]]:
    """Return where each column's values begin, and their sizes. Raises `CorruptData`."""
    begin, end = offsets[:-1], offsets[1:]
    varying = [column.name for column in columns if column.size is None]
    at = begin + SIZE_BYTES * len(varying)
    _check(at <= end)
    sizes = {
        name: unaligned(data, "<u4", begin + SIZE_BYTES * number).astype(np.int64)
        for number, name in enumerate(varying)
    }
    places = {}
    for column in columns:
        size = sizes.get(column.name, np.full(len(begin), column.size or 0, np.int64))
        places[column.name] = at, size
        at = at + size
    _check(at == end)
    return places


def _values(
    data: Buffer, column: StoredColumn, at: Places, size: Places, asked: pa.DataType
) -> pa.Array:
    """Return a column, of its own type or as ``asked``. Raises `CorruptData`, `SchemaMismatch`."""
    dtype = column.dtype
    if column.encoding in NUMBERS:
        return pa.array(unaligned(data, _numpy(dtype), at))
    if column.array is None:
        if size.sum() > MOST_BYTES:
            raise CorruptData(f"column {column.name!r} has values of more than 2 GiB at once.")
        return parse_bytes(column.name, binary_array(data, at, size), asked)
    values_at = at
    if column.size is None:
        values_at = at + _shape_bytes(data, at, size)
        size = size - (values_at - at)
    width = column.array.bit_width // 8
    if (size < 0).any() or (size % width).any():
        raise CorruptData(f"an array of column {column.name!r} is damaged.")
    flat = pa.array(gathered(data, values_at, size).view(_numpy(column.array)))
    if pa.types.is_fixed_size_list(dtype):
        return pa.FixedSizeListArray.from_arrays(flat, dtype.list_size)
    ends = np.concatenate([[0], np.cumsum(size // width)]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(ends), flat)


def _shape_bytes(data: Buffer, at: Places, size: Places) -> Places:
    """Return the bytes of the shape before each array: one that holds the number of axes and the
    width of their lengths, and then these lengths. Raises `CorruptData`."""
    _check(size > 0)
    kinds = unaligned(data, "u1", at).astype(np.int64)
    shape: Places = 1 + ((kinds >> 2) << (kinds & 3))
    return shape


def _numpy(dtype: pa.DataType) -> str:
    name: str = np.dtype(dtype.to_pandas_dtype()).newbyteorder("<").str
    return name


def _check(good: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> None:
    """Raise `CorruptData` unless all samples are good."""
    if not good.all():
        raise CorruptData("the sizes of a sample do not fit its bytes.")
