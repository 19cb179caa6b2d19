"""What a batch holds, whatever its shape."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import nan
from typing import Any

import numpy as np
import torch

from pipeprof.loaders.tensors import Batch, Ragged


def epochs(loader: Iterable[Any]) -> Iterator[Any]:
    """Batches of one epoch after another, without end; ends when an epoch has none."""
    while True:
        empty = True
        for batch in loader:
            empty = False
            yield batch
        if empty:
            return


def count_samples(batch: Any, batch_size: int | None = None) -> int:
    """Samples in ``batch``: the length of its first part that has one; 1 when none has.

    A list may be the samples themselves, or parts that each hold all samples, as
    ``[inputs, labels]``; ``batch_size``, when known, settles which.
    """
    if isinstance(batch, torch.Tensor):
        return batch.size(0) if batch.ndim else 1
    # exact types first: to ask whether something is a Sequence is dear
    if type(batch) is list or type(batch) is tuple:
        return _count_parts(batch, batch_size)
    if not hasattr(batch, "__len__") and not hasattr(batch, "shape"):
        return 1
    if isinstance(batch, Mapping):
        return next((count_samples(part, batch_size) for part in batch.values()), 0)
    shape = getattr(batch, "shape", None)
    if shape is not None:
        return int(shape[0]) if len(shape) else 1
    if isinstance(batch, str | bytes) or not hasattr(batch, "__len__"):
        return 1
    return _count_parts(batch, batch_size) if isinstance(batch, Sequence) else len(batch)


def _count_parts(batch: Sequence[Any], batch_size: int | None) -> int:
    if not batch or len(batch) == batch_size:
        return len(batch)
    first = batch[0]
    has_parts = hasattr(first, "shape") or (
        isinstance(first, Mapping | Sequence) and not isinstance(first, str | bytes)
    )
    return count_samples(first, batch_size) if has_parts else len(batch)


_MOST_PARTS = 2048
"""Looked at in one batch: about a millisecond."""
_NUMBER_BYTES = 8.0
_NO_TENSORS = (int, float, complex, str, bytes, type(None))


def batch_nbytes(batch: Any) -> tuple[float, float, float]:
    """Tensors in ``batch`` that travel to main one by one, their bytes in all, and the bytes of
    what is pickled beside them, NaN where that cannot be told; all are NaN for a batch of too many
    parts to look through. A sequence that begins with a number or a text holds no tensors."""
    pieces, size, loose, waiting, looked = 0, 0.0, 0.0, [batch], 0
    while waiting:
        part = waiting.pop()
        looked += 1
        if looked > _MOST_PARTS:
            return nan, nan, nan
        if isinstance(part, torch.Tensor):
            pieces += 1
            size += part.element_size() * part.numel()
        elif isinstance(part, Batch):
            pieces += 1
            for _, own, beside in map(batch_nbytes, part.values()):
                size, loose = size + own, loose + beside
        elif inside := _inside(part):
            waiting += inside
        else:
            loose += _loose_bytes(part, _MOST_PARTS // looked)  # so that all take no longer
    return pieces, size, loose


def _loose_bytes(part: Any, most: int) -> float:
    """Of what holds no tensors; NaN: unknown, or it holds more than ``most`` parts."""
    if isinstance(part, str | bytes | bytearray):
        return len(part)
    if isinstance(part, _NO_TENSORS):
        return _NUMBER_BYTES
    if isinstance(part, np.ndarray | np.generic):
        return nan if part.dtype.hasobject else part.nbytes
    if not isinstance(part, Sequence | Mapping) or len(part) > most:
        return nan
    plain = all(isinstance(each, _NO_TENSORS) for each in part)
    return sum(_loose_bytes(each, 0) for each in part) if plain else nan


def _inside(part: Any) -> Iterable[Any]:
    if isinstance(part, Ragged):
        return part.values, part.offsets
    if isinstance(part, Mapping):
        return part.values()
    if not isinstance(part, Sequence) or isinstance(part, str | bytes) or not part:
        return ()
    return () if isinstance(part[0], _NO_TENSORS) else part
