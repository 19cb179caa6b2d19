"""A batch: column → tensor, and how it travels between processes.

A column of numbers is a tensor [n], one of lists of a fixed size k a tensor [n, k], one of strings,
bytes or other lists a `Ragged`; `pipeprof.loaders.dataset.arrow_arrays` tells which becomes what.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch


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
