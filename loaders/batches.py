"""What a batch holds, whatever its shape."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch

from pipeprof.loaders.tensors import Batch, Ragged


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


def weigh(batch: Any) -> tuple[int, int]:
    """Tensors in ``batch`` that travel to main one by one, and their bytes in all."""
    if isinstance(batch, torch.Tensor):
        return 1, batch.element_size() * batch.numel()
    if isinstance(batch, Ragged):
        parts: Iterable[Any] = (batch.values, batch.offsets)
    elif isinstance(batch, Mapping):
        parts = batch.values()
    elif isinstance(batch, Sequence) and not isinstance(batch, str | bytes):
        parts = batch
    else:
        return 0, 0
    weights = [weigh(part) for part in parts]
    pieces, size = sum(weight[0] for weight in weights), sum(weight[1] for weight in weights)
    return (min(1, pieces), size) if isinstance(batch, Batch) else (pieces, size)
