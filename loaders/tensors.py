"""Arrow columns → tensors: one mapping, whatever the format.

| Arrow column                   | in a batch of n rows                          | null becomes |
|--------------------------------|-----------------------------------------------|--------------|
| integer of any width           | tensor [n] of that width                      | 0            |
| float16, float32, float64      | tensor [n] of that width                      | NaN          |
| bool                           | tensor [n], bool                              | False        |
| string, binary                 | `Ragged` of uint8 (strings as UTF-8)          | empty        |
| list of fixed size k           | tensor [n, k]                                 | zeros, NaN   |
| list                           | `Ragged` of the values                        | empty        |

`null_masks=True` adds, per column, a bool tensor [n] named ``COLUMN.null``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import torch

from pipeprof.errors import SchemaMismatch


class Batch(dict[str, Any]):
    """Column name → `torch.Tensor` or `Ragged`.

    Between processes it travels in one piece: torch sends each tensor of a plain dict through a
    shared-memory file and a hand-shake of its own, for which the receiver waits until the worker
    lets go of its interpreter lock. A large batch is one such tensor, a small one plain bytes.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        flat, parts, rest = _packed(self)
        if flat.numel() > _SMALL_BYTES:
            return _unpacked, (flat, parts, rest)
        return _unpacked, (flat.numpy().tobytes(), parts, rest)

    def __copy__(self) -> Batch:
        return Batch(self)


@dataclass(frozen=True)
class Ragged:
    """n rows of different lengths: ``values[offsets[i]:offsets[i + 1]]`` is row i."""

    values: torch.Tensor
    offsets: torch.Tensor
    """int64 [n + 1]"""

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, row: int) -> torch.Tensor:
        if not -len(self) <= row < len(self):
            raise IndexError(f"row {row} of {len(self)}")
        row %= len(self)
        return self.values[self.offsets[row] : self.offsets[row + 1]]

    def bytes_at(self, row: int) -> bytes:
        """Row of a string or binary column."""
        return self[row].numpy().tobytes()

    def to(self, *arguments: Any, **options: Any) -> Ragged:
        return Ragged(self.values.to(*arguments, **options), self.offsets.to(*arguments, **options))

    def pin_memory(self) -> Ragged:
        return Ragged(self.values.pin_memory(), self.offsets.pin_memory())


def to_tensors(table: pa.RecordBatch, null_masks: bool = False) -> Batch:
    """The columns of ``table`` as tensors that own their memory. Raises `SchemaMismatch`."""
    batch = Batch()
    for field, column in zip(table.schema, table.columns, strict=True):
        batch[field.name] = _column(field, column)
        if null_masks:
            batch[f"{field.name}.null"] = _owned(
                column.is_null().to_numpy(zero_copy_only=False), np.bool_
            )
    return batch


def _column(field: pa.Field, column: pa.Array) -> torch.Tensor | Ragged:
    kind = field.type
    if pa.types.is_fixed_size_list(kind):
        return _fixed(column)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _ragged(column, _scalars(column.flatten()))
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return _blobs(column)
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind):
        return _scalars(column)
    raise SchemaMismatch(
        f"column {field.name!r} has type {kind}, which has no tensor form here; "
        "leave it out with columns=…"
    )


def _scalars(column: pa.Array) -> torch.Tensor:
    kind = column.type
    # to_numpy makes NaN of a null by itself, and would make floats of integers
    if column.null_count and not pa.types.is_floating(kind):
        column = pc.fill_null(column, pa.scalar(0).cast(kind))
    return _owned(column.to_numpy(zero_copy_only=False), kind.to_pandas_dtype())


def _fixed(column: pa.FixedSizeListArray) -> torch.Tensor:
    size, kind = column.type.list_size, column.type.value_type
    if not column.null_count:
        return _scalars(column.flatten()).reshape(len(column), size)
    filler = float("nan") if pa.types.is_floating(kind) else 0
    whole = torch.full((len(column), size), filler, dtype=_scalars(pa.array([], kind)).dtype)
    there = torch.from_numpy(column.is_valid().to_numpy(zero_copy_only=False).copy())
    whole[there] = _scalars(column.flatten()).reshape(-1, size)
    return whole


def _ragged(column: pa.Array, values: torch.Tensor) -> Ragged:
    lengths = pc.fill_null(pc.list_value_length(column), 0)
    return Ragged(values, _offsets(lengths.to_numpy(zero_copy_only=False)))


def _blobs(column: pa.Array) -> Ragged:
    if column.null_count:
        column = pc.fill_null(column, pa.scalar(b"").cast(column.type))
    _, ends, data = column.buffers()
    if not len(column) or data is None:
        return Ragged(
            torch.empty(0, dtype=torch.uint8), torch.zeros(len(column) + 1, dtype=torch.int64)
        )
    offsets = np.frombuffer(ends, np.int32)[column.offset : column.offset + len(column) + 1]
    values = np.frombuffer(data, np.uint8)[offsets[0] : offsets[-1]]
    return Ragged(_owned(values, np.uint8), _owned(offsets - offsets[0], np.int64))


def _offsets(lengths: npt.NDArray[Any]) -> torch.Tensor:
    offsets = torch.zeros(len(lengths) + 1, dtype=torch.int64)
    np.cumsum(lengths, out=offsets.numpy()[1:])
    return offsets


def _owned(values: npt.NDArray[Any], dtype: Any) -> torch.Tensor:
    """A copy in torch's own memory: Arrow's is read-only, and shared with the whole split."""
    return torch.from_numpy(np.array(values, dtype=dtype))


_SMALL_BYTES = 256 * 2**10
"""Up to here bytes through a pipe are quicker than the hand-shake of a shared-memory file."""
_ALIGNMENT = 16
_OFFSETS = "\0offsets"
"""Ends the name under which the offsets of a `Ragged` travel."""


@dataclass(frozen=True)
class _Part:
    """One tensor in a packed batch."""

    name: str
    dtype: torch.dtype
    shape: tuple[int, ...]
    start: int
    """Bytes from the beginning; a multiple of `_ALIGNMENT`."""

    def of(self, views: _Views) -> torch.Tensor:
        first = self.start // self.dtype.itemsize
        tensor = views[self.dtype][first : first + math.prod(self.shape)]
        return tensor.view(self.shape) if len(self.shape) != 1 else tensor


class _Views(dict[torch.dtype, torch.Tensor]):
    """The same bytes as elements of any type."""

    def __init__(self, flat: torch.Tensor) -> None:
        self._flat = flat

    def __missing__(self, dtype: torch.dtype) -> torch.Tensor:
        self[dtype] = self._flat.view(dtype)
        return self[dtype]


def _packed(batch: Batch) -> tuple[torch.Tensor, list[_Part], dict[str, Any]]:
    """All tensors end to end in one, where to find them in it, and the batch with whatever else
    the user has put into it; a tensor's place there is kept by None."""
    tensors: dict[str, torch.Tensor] = {}
    rest: dict[str, Any] = {}
    for name, value in batch.items():
        rest[name] = None
        if isinstance(value, Ragged):
            tensors[name], tensors[name + _OFFSETS] = value.values, value.offsets
        elif isinstance(value, torch.Tensor) and _is_plain(value):
            tensors[name] = value
        else:
            rest[name] = value
    parts, size = [], 0
    for name, tensor in tensors.items():
        parts.append(_Part(name, tensor.dtype, tuple(tensor.shape), size))
        size += -(-tensor.numel() * tensor.element_size() // _ALIGNMENT) * _ALIGNMENT
    flat = torch.empty(size, dtype=torch.uint8)
    views = _Views(flat)
    for part, tensor in zip(parts, tensors.values(), strict=True):
        part.of(views).copy_(tensor)
    return flat, parts, rest


def _is_plain(tensor: torch.Tensor) -> bool:
    return (
        tensor.device.type == "cpu"
        and tensor.layout is torch.strided
        and not tensor.requires_grad
        and not tensor.is_quantized
    )


def _unpacked(flat: torch.Tensor | bytes, parts: list[_Part], rest: dict[str, Any]) -> Batch:
    batch = Batch(rest)
    if isinstance(flat, bytes):
        # a copy, since bytes are read-only; none at all has no buffer to make a tensor of
        flat = (
            torch.frombuffer(bytearray(flat), dtype=torch.uint8)
            if flat
            else torch.zeros(0, dtype=torch.uint8)
        )
    views = _Views(flat)
    for part in parts:
        tensor = part.of(views)
        if part.name.endswith(_OFFSETS):
            owner = part.name.removesuffix(_OFFSETS)
            batch[owner] = Ragged(batch[owner], tensor)
        else:
            batch[part.name] = tensor
    return batch
