"""What a batch holds, whatever its shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def count_samples(batch: Any, batch_size: int | None = None) -> int:
    """Samples in ``batch``: the length of its first part that has one; 1 when none has.

    A list may be the samples themselves, or parts that each hold all samples, as
    ``[inputs, labels]``; ``batch_size``, when known, settles which.
    """
    if isinstance(batch, Mapping):
        return next((count_samples(part, batch_size) for part in batch.values()), 0)
    shape = getattr(batch, "shape", None)
    if shape is not None:
        return int(shape[0]) if len(shape) else 1
    if isinstance(batch, str | bytes) or not hasattr(batch, "__len__"):
        return 1
    if not isinstance(batch, Sequence) or not batch or len(batch) == batch_size:
        return len(batch)
    first = batch[0]
    has_parts = hasattr(first, "shape") or (
        isinstance(first, Mapping | Sequence) and not isinstance(first, str | bytes)
    )
    return count_samples(first, batch_size) if has_parts else len(batch)
