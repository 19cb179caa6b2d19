"""Count the samples and bytes of a batch of any structure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import nan
from typing import Any

import numpy as np
import torch

from pipeprof.loaders.tensors import Batch, Ragged


def epochs(loader: Iterable[Any]) -> Iterator[Any]:
    """Yield the batches of epoch after epoch, until an epoch is empty."""
    while True:
        empty = True
        for batch in loader:
            empty = False
            yield batch
        if empty:
            return


def count_samples(batch: Any, batch_size: int | None = None) -> int:
    """Return the number of samples: the length of the first part that has one, else 1. A list may
    hold the samples themselves, or parts that each hold all samples, as ``[inputs, labels]``. It
    holds the samples where its length is ``batch_size``."""
    if isinstance(batch, torch.Tensor):
        return batch.size(0) if batch.ndim else 1
    # exact types first, because isinstance with Sequence is slow
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
"""Most parts of a batch that are visited, which takes about a millisecond."""
_NUMBER_BYTES = 8.0
_SCALARS = (int, float, complex, str, bytes, type(None))


def batch_nbytes(batch: Any) -> tuple[float, float, float]:
    """Return how many tensors travel to main one by one, their bytes, and all other pickled bytes.
    The last is NaN where it is unknown. All are NaN for a batch of more than 2048 parts. A sequence
    that begins with a number or a string is taken to hold no tensors."""
    tensors, tensor_bytes, other_bytes, pending, visited = 0, 0.0, 0.0, [batch], 0
    while pending:
        part = pending.pop()
        visited += 1
        if visited > _MOST_PARTS:
            return nan, nan, nan
        if isinstance(part, torch.Tensor):
            tensors += 1
            tensor_bytes += part.element_size() * part.numel()
        elif isinstance(part, Batch):  # it travels as one tensor
            tensors += 1
            for _, packed, other in map(batch_nbytes, part.values()):
                tensor_bytes, other_bytes = tensor_bytes + packed, other_bytes + other
        elif children := _children(part):
            pending += children
        else:
            other_bytes += _other_nbytes(part, _MOST_PARTS // visited)  # bounds the time of all
    return tensors, tensor_bytes, other_bytes


def _other_nbytes(part: Any, most: int) -> float:
    """Return the bytes of a part without tensors; NaN if unknown or of more than ``most`` items."""
    if isinstance(part, str | bytes | bytearray):
        return len(part)
    if isinstance(part, _SCALARS):
        return _NUMBER_BYTES
    if isinstance(part, np.ndarray | np.generic):
        return nan if part.dtype.hasobject else part.nbytes
    if not isinstance(part, Sequence | Mapping) or len(part) > most:
        return nan
    plain = all(isinstance(each, _SCALARS) for each in part)
    return sum(_other_nbytes(each, 0) for each in part) if plain else nan


def _children(part: Any) -> Iterable[Any]:
    """Return the items of ``part`` that may be or hold tensors."""
    if isinstance(part, Ragged):
        return part.values, part.offsets
    if isinstance(part, Mapping):
        return part.values()
    if not isinstance(part, Sequence) or isinstance(part, str | bytes) or not part:
        return ()
    return () if isinstance(part[0], _SCALARS) else part
