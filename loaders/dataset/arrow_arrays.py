"""Convert Arrow columns to NumPy arrays, in the same way for every format.

| Arrow column                   | n rows as                                     | null becomes |
|--------------------------------|-----------------------------------------------|--------------|
| integer of any width           | array [n] of that width                       | 0            |
| float16, float32, float64      | array [n] of that width                       | NaN          |
| bool                           | array [n], bool                               | False        |
| string, binary                 | `RaggedArray` of uint8 (strings as UTF-8)     | empty        |
| list of fixed size k           | array [n, k]                                  | zeros, NaN   |
| list                           | `RaggedArray` of the values                   | empty        |
| any other                      | the Arrow array itself                        | null         |

Arrays are views of Arrow's memory wherever possible. Arrow calls its memory immutable. But decoded
rows belong to no other table and go into one batch only, so the batch may be written to.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from torch.utils.dlpack import from_dlpack

Numbers = npt.NDArray[Any]


@dataclass(frozen=True)
class RaggedArray:
    """Rows of different lengths: row i is ``values[offsets[i]:offsets[i + 1]]``."""

    values: Numbers
    offsets: Numbers
    """Offsets of n rows, [n + 1] of any integer type; they may span only a part of the values."""

    def __len__(self) -> int:
        return len(self.offsets) - 1


Array: TypeAlias = "Numbers | RaggedArray | pa.Array"
"""The rows of a column. An Arrow array has no tensor form."""


def to_arrays(table: pa.RecordBatch, null_masks: bool = False) -> dict[str, Array]:
    """Return the columns of ``table`` by name. With ``null_masks`` there is a bool array
    ``NAME.null`` [n] for each column."""
    arrays: dict[str, Array] = {}
    for name, column in zip(table.schema.names, table.columns, strict=True):
        arrays[name] = _column(column)
        if null_masks:
            arrays[f"{name}.null"] = _numbers(column.is_null())
    return arrays


def _column(column: pa.Array) -> Array:
    kind = column.type
    if _is_number(kind):
        return _numbers(column)
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return _blobs(column)
    if pa.types.is_fixed_size_list(kind) and _is_number(kind.value_type):
        return _fixed(column)
    if pa.types.is_list(kind) and _is_number(kind.value_type):
        return _ragged(column)
    return column


def _is_number(kind: pa.DataType) -> bool:
    is_a = pa.types
    return bool(is_a.is_integer(kind) or is_a.is_floating(kind) or is_a.is_boolean(kind))


def _numbers(column: pa.Array) -> Numbers:
    kind = column.type
    if column.null_count:
        filler = float("nan") if pa.types.is_floating(kind) else 0
        column = pc.fill_null(column, pa.scalar(filler).cast(kind))
    if not pa.types.is_boolean(kind):
        return _view(column)
    unpacked: Numbers = column.to_numpy(zero_copy_only=False)  # a copy, as Arrow stores bits
    return unpacked


def _view(column: pa.Array) -> Numbers:
    """Return a writable view of Arrow's memory."""
    _, memory = column.buffers()
    if not len(column) or not memory.is_mutable:  # NumPy's own view would be read-only
        view: Numbers = from_dlpack(column).numpy()
        return view
    stop = column.offset + len(column)
    return np.frombuffer(memory, column.type.to_pandas_dtype(), stop)[column.offset :]


def _fixed(column: pa.FixedSizeListArray) -> Numbers:
    size, kind = column.type.list_size, column.type.value_type
    valid = _numbers(column.flatten()).reshape(-1, size)
    if not column.null_count:
        return valid
    filler = float("nan") if pa.types.is_floating(kind) else 0
    rows = np.full((len(column), size), filler, valid.dtype)
    rows[column.is_valid().to_numpy(zero_copy_only=False)] = valid
    return rows


def _ragged(column: pa.ListArray) -> RaggedArray:
    values = _numbers(column.flatten())  # without those of null rows, which may have some
    if not column.null_count:
        offsets = column.offsets.to_numpy()
        return RaggedArray(values, offsets - offsets[0] if len(offsets) else np.zeros(1, np.int32))
    lengths = pc.fill_null(pc.list_value_length(column), 0)
    offsets = np.zeros(len(column) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return RaggedArray(values, offsets)


def _blobs(column: pa.Array) -> RaggedArray:
    if column.null_count:
        column = pc.fill_null(column, pa.scalar(b"").cast(column.type))
    _, ends, data = column.buffers()
    if not len(column) or data is None:
        return RaggedArray(np.empty(0, np.uint8), np.zeros(len(column) + 1, np.int32))
    offsets = np.frombuffer(ends, np.int32)[column.offset : column.offset + len(column) + 1]
    octets = pa.Array.from_buffers(pa.uint8(), data.size, [None, data])
    return RaggedArray(_view(octets), offsets)
