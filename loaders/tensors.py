"""Batches of tensors by column, and how they travel between processes.

A column of numbers is a tensor [n], and one of lists of a fixed size k is a tensor [n, k]. Strings,
bytes and other lists are a `Ragged`. `pipeprof.loaders.dataset.arrow_arrays` has the full table.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch


class Batch(dict[str, Any]):
    """Maps column names to `torch.Tensor` or `Ragged`.

    It travels between processes in one piece: a large batch as one tensor, a small one as bytes.
    Of a plain dict torch sends each tensor through its own shared-memory file and handshake, for
    which the receiver waits until the worker releases its interpreter lock.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        flat, parts, others = _pack(self)
        if flat.numel() > _SMALL_BYTES:
            return _unpack, (flat, parts, others)
        return _unpack, (flat.numpy().tobytes(), parts, others)

    def __copy__(self) -> Batch:
        return Batch(self)


@dataclass(frozen=True)
class Ragged:
    """Rows of different lengths: row i is ``values[offsets[i]:offsets[i + 1]]``."""

    values: torch.Tensor
    offsets: torch.Tensor
    """Offsets of n rows, int64 [n + 1]."""

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, row: int) -> torch.Tensor:
        if not -len(self) <= row < len(self):
            raise IndexError(f"row {row} of {len(self)}")
        row %= len(self)
        return self.values[self.offsets[row] : self.offsets[row + 1]]

    def bytes_at(self, row: int) -> bytes:
        """Return a row of a string or binary column as bytes."""
        return self[row].numpy().tobytes()

    def to(self, *arguments: Any, **options: Any) -> Ragged:
        return Ragged(self.values.to(*arguments, **options), self.offsets.to(*arguments, **options))

    def pin_memory(self) -> Ragged:
        return Ragged(self.values.pin_memory(), self.offsets.pin_memory())


_SMALL_BYTES = 256 * 2**10
"""Up to this size a pipe is faster than the handshake of a shared-memory file."""
_ALIGNMENT = 16
_OFFSETS = "\0offsets"
"""Suffix of the name under which the offsets of a `Ragged` are packed."""


@dataclass(frozen=True)
class _Part:
    """The place of one tensor in a packed batch."""

    name: str
    dtype: torch.dtype
    shape: tuple[int, ...]
    start: int
    """Offset in bytes; a multiple of `_ALIGNMENT`."""

    def view(self, views: _Views) -> torch.Tensor:
        """Return the tensor as a view of the packed bytes."""
        first = self.start // self.dtype.itemsize
        tensor = views[self.dtype][first : first + math.prod(self.shape)]
        return tensor.view(self.shape) if len(self.shape) != 1 else tensor


class _Views(dict[torch.dtype, torch.Tensor]):
    """The packed bytes viewed as elements of each type, made when first asked for."""

    def __init__(self, flat: torch.Tensor) -> None:
        self._flat = flat

    def __missing__(self, dtype: torch.dtype) -> torch.Tensor:
        self[dtype] = self._flat.view(dtype)
        return self[dtype]


def _pack(batch: Batch) -> tuple[torch.Tensor, list[_Part], dict[str, Any]]:
    """Copy all tensors into one, and return it, the tensors' places in it, and all other values.
    The other values keep the order of the batch, with None in place of each tensor."""
    tensors: dict[str, torch.Tensor] = {}
    others: dict[str, Any] = {}
    for name, value in batch.items():
        others[name] = None
        if isinstance(value, Ragged):
            tensors[name], tensors[name + _OFFSETS] = value.values, value.offsets
        elif isinstance(value, torch.Tensor) and _is_plain(value):
            tensors[name] = value
        else:
            others[name] = value
    parts, size = [], 0
    for name, tensor in tensors.items():
        parts.append(_Part(name, tensor.dtype, tuple(tensor.shape), size))
        size += -(-tensor.numel() * tensor.element_size() // _ALIGNMENT) * _ALIGNMENT
    flat = torch.empty(size, dtype=torch.uint8)
    views = _Views(flat)
    for part, tensor in zip(parts, tensors.values(), strict=True):
        part.view(views).copy_(tensor)
    return flat, parts, others


def _is_plain(tensor: torch.Tensor) -> bool:
    """Return whether the bytes and the shape are all there is to ``tensor``."""
    return (
        tensor.device.type == "cpu"
        and tensor.layout is torch.strided
        and not tensor.requires_grad
        and not tensor.is_quantized
    )


def _unpack(flat: torch.Tensor | bytes, parts: list[_Part], others: dict[str, Any]) -> Batch:
    batch = Batch(others)
    if isinstance(flat, bytes):
        # copied, because bytes are read-only; torch makes no tensor of an empty buffer
        flat = (
            torch.frombuffer(bytearray(flat), dtype=torch.uint8)
            if flat
            else torch.zeros(0, dtype=torch.uint8)
        )
    views = _Views(flat)
    for part in parts:
        tensor = part.view(views)
        if part.name.endswith(_OFFSETS):
            owner = part.name.removesuffix(_OFFSETS)
            batch[owner] = Ragged(batch[owner], tensor)
        else:
            batch[part.name] = tensor
    return batch
