"""Recognise loops on which there is no verdict, as the waits of the loop are not those of training.

A thread may take the batches ahead of the training loop. Or a loop makes a new iterator for each
batch, by ``next(iter(loader))``: then it only waits for starts, and trains between two iterators.
"""

from __future__ import annotations

from collections.abc import Sequence

from pipeprof.analyze.profile.no_step import has_step
from pipeprof.analyze.profile.run_summary import Summary
from pipeprof.model import Epoch, Recording, Unjudged

_LEAST_ITERATORS = 10
_LEAST_SHARE = 0.9
"""Share of the iterators that are left after their first batch. Others may be whole validations."""


def why_unjudged(recording: Recording, summary: Summary) -> Unjudged:
    """Return why there is no verdict; empty where there is one."""
    if _has_iterator_per_batch(recording.epochs):
        return "iterator-per-batch"
    # a thread that never waits for room shows that the loader is the limit
    return "taken-ahead" if recording.taken_ahead and has_step(summary) else ""


def _has_iterator_per_batch(epochs: Sequence[Epoch]) -> bool:
    """Whether the loop leaves its iterators after one batch, instead of exhausting them."""
    left = sum(epoch.batches == 1 and epoch.closing_s is None for epoch in epochs)
    return left >= max(_LEAST_ITERATORS, _LEAST_SHARE * len(epochs))
