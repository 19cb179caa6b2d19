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

_LEAST = 10
"""Batches that each side is measured on, however long they take."""


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
    timer = _Timer(step, clock)
    batches = _endless(loader)
    kept = _first(batches, timer, keep, keep_bytes)
    replayed = cycle(kept)
    free, loaded = _Turn(), _Turn()
    timer.take(replayed, free, seconds / 4)
    for _ in range(_ahead(loader)):
        timer.once(batches)
    timer.take(batches, loaded, seconds / 2)
    timer.take(replayed, free, seconds / 4)
    return _headspace_of(loaded, free, len(kept))


@dataclass
class _Turn:
    """Batches that were stepped on under the clock."""

    samples: list[float] = field(default_factory=list)
    cycle_s: list[float] = field(default_factory=list)

    def rate(self) -> tuple[float, tuple[float, float]]:
        samples, seconds = np.array(self.samples), np.array(self.cycle_s)
        return float(samples.sum() / seconds.sum()), ratio_interval(samples, seconds)


class _Timer:
    def __init__(self, step: Callable[[Any], Any], clock: Clock) -> None:
        self._step, self._clock = step, clock

    def once(self, batches: Iterator[Any]) -> Any:
        batch = next(batches)
        self._step(batch)
        return batch

    def take(self, batches: Iterator[Any], turn: _Turn, seconds: float) -> None:
        _wait_for_device()
        begun = at = self._clock.now()
        count = 0
        while count < _LEAST or at - begun < seconds:
            batch = self.once(batches)
            count += 1
            if count >= _LEAST and self._clock.now() - begun >= seconds:
                _wait_for_device()  # the last one's share is the work that is left
            now = self._clock.now()
            turn.samples.append(float(count_samples(batch)))
            turn.cycle_s.append(now - at)
            at = now


def _first(batches: Iterator[Any], timer: _Timer, keep: int, keep_bytes: float) -> list[Any]:
    kept: list[Any] = []
    size = 0.0
    while len(kept) < max(1, keep) and (not kept or size < keep_bytes):
        batch = timer.once(batches)
        kept.append(batch)
        size += np.nan_to_num(batch_nbytes(batch)[1])
    return kept


def _endless(loader: Iterable[Any]) -> Iterator[Any]:
    yield from epochs(loader)
    raise UsageError("the loader gave no batch: there is nothing to feed or to replay.")


def _ahead(loader: Any) -> int:
    """Batches that may lie ready when nobody has asked for a while."""
    workers = getattr(loader, "num_workers", 0) or 0
    return int(workers * (getattr(loader, "prefetch_factor", None) or 2))


def _wait_for_device() -> None:
    cuda: Any = torch.cuda
    if cuda.is_available() and cuda.is_initialized():
        cuda.synchronize()


def _headspace_of(loaded: _Turn, free: _Turn, kept: int) -> Headspace:
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
