"""`pipeprof.headspace`: the gain if data were free, measured by replaying real batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any

import numpy as np
import torch

from pipeprof.analyze.profile.intervals import ratio_interval
from pipeprof.errors import UsageError
from pipeprof.loaders.instrument.batch_size import batch_nbytes, count_samples, epochs
from pipeprof.measure.clock import SYSTEM_CLOCK, Clock
from pipeprof.model import Headspace

_FEWEST_BATCHES = 10
"""Fewest batches that a phase measures, however long they take."""


def headspace(
    loader: Iterable[Any],
    step: Callable[[Any], Any],
    *,
    seconds: float = 10.0,
    keep: int = 8,
    keep_bytes: float = 1 << 30,
    clock: Clock = SYSTEM_CLOCK,
) -> Headspace:
    """Measure what training would gain if its batches cost nothing.

    ``step`` is fed from ``loader`` for half of the time. Before and after that it is fed kept
    batches from memory, so that a machine that slows down or warms up favours neither. Batches
    that workers had ready beforehand are not counted.

    Args:
        loader: A ``DataLoader`` or another iterable of batches. It is iterated again when it ends.
        step: Your training step. It really runs, on replayed batches too, so give it a copy of
            the model if its weights matter. Its work on a CUDA device is waited for.
        seconds: How long to measure, in all.
        keep: How many batches to keep for the replay, at most.
        keep_bytes: How many bytes of batches to keep, at most.
        clock: A clock for tests.

    Returns:
        Samples per second of both with 95 % intervals, and their ratio with its interval.

    Raises:
        UsageError: The loader yields no batch.

    Examples:
        >>> print(pipeprof.headspace(loader, train_step))
        If data were free: 1.74× (1.44–2.15), 637 instead of 366 samples/s, ...
    """
    timer = _StepTimer(step, clock)
    batches = _endless(loader)
    kept = _keep_first(batches, timer, keep, keep_bytes)
    replayed = cycle(kept)
    free, loaded = _Phase(), _Phase()
    timer.measure(replayed, free, seconds / 4)
    for _ in range(_prefetched(loader)):
        timer.step(batches)
    timer.measure(batches, loaded, seconds / 2)
    timer.measure(replayed, free, seconds / 4)
    return _headspace_of(loaded, free, len(kept))


@dataclass
class _Phase:
    """Samples and seconds of each timed batch of one source."""

    samples: list[float] = field(default_factory=list)
    cycle_s: list[float] = field(default_factory=list)

    def rate(self) -> tuple[float, tuple[float, float]]:
        """Return samples per second, and their 95 % interval."""
        samples, seconds = np.array(self.samples), np.array(self.cycle_s)
        return float(samples.sum() / seconds.sum()), ratio_interval(samples, seconds)


class _StepTimer:
    """Runs the training step on batches, and times it."""

    def __init__(self, step: Callable[[Any], Any], clock: Clock) -> None:
        self._step, self._clock = step, clock

    def step(self, batches: Iterator[Any]) -> Any:
        """Run one step, and return its batch."""
        batch = next(batches)
        self._step(batch)
        return batch

    def measure(self, batches: Iterator[Any], phase: _Phase, seconds: float) -> None:
        """Run steps for about ``seconds``, and add their times to ``phase``."""
        _wait_for_device()
        began = last = self._clock.now()
        count = 0
        while count < _FEWEST_BATCHES or last - began < seconds:
            batch = self.step(batches)
            count += 1
            if count >= _FEWEST_BATCHES and self._clock.now() - began >= seconds:
                _wait_for_device()  # the queued device work counts for the last batch
            now = self._clock.now()
            phase.samples.append(float(count_samples(batch)))
            phase.cycle_s.append(now - last)
            last = now


def _keep_first(
    batches: Iterator[Any], timer: _StepTimer, keep: int, keep_bytes: float
) -> list[Any]:
    """Run steps on the first batches, and return these for the replay."""
    kept: list[Any] = []
    size = 0.0
    while len(kept) < max(1, keep) and (not kept or size < keep_bytes):
        batch = timer.step(batches)
        kept.append(batch)
        size += np.nan_to_num(batch_nbytes(batch)[1])
    return kept


def _endless(loader: Iterable[Any]) -> Iterator[Any]:
    """Yield batches of one epoch after another. Raises `UsageError` where an epoch is empty."""
    yield from epochs(loader)
    raise UsageError("the loader yielded no batch, so there is nothing to measure or to replay.")


def _prefetched(loader: Any) -> int:
    """Return the most batches that workers may have ready."""
    workers = getattr(loader, "num_workers", 0) or 0
    return int(workers * (getattr(loader, "prefetch_factor", None) or 2))


def _wait_for_device() -> None:
    cuda: Any = torch.cuda
    if cuda.is_available() and cuda.is_initialized():
        cuda.synchronize()


def _headspace_of(loaded: _Phase, free: _Phase, kept: int) -> Headspace:
    rate, interval = loaded.rate()
    free_rate, free_interval = free.rate()
    return Headspace(
        samples_per_s=rate,
        interval=interval,
        free_samples_per_s=free_rate,
        free_interval=free_interval,
        gain=free_rate / rate,
        gain_interval=(free_interval[0] / interval[1], free_interval[1] / interval[0]),
        batches=len(loaded.samples),
        free_batches=len(free.samples),
        kept_batches=kept,
    )
