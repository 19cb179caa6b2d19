"""Define a data set and a collate function that time themselves. Each batch carries its own
readings."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field
from time import perf_counter, sleep, thread_time
from typing import Any, NamedTuple

import torch
from torch.utils.data import Dataset

from pipeprof.model import Span
from pipeprof.selfcheck.acts import Act


@dataclass(frozen=True)
class ClockedSample:
    """A worker's readings for one sample."""

    index: int
    spans: tuple[Span, ...]
    """One span per act."""
    start_s: float
    end_s: float
    cpu_start_s: float
    """CPU time of the thread at ``start_s``."""
    sleeps_s: float
    """Intended seconds of sleep."""


@dataclass(frozen=True)
class ClockedDataset(Dataset[ClockedSample]):
    """A data set that performs ``acts`` for each sample."""

    length: int
    acts: tuple[Act, ...]
    jitter: float = 0.0
    """Largest relative change of a sample's duration; the changes are the same in each run."""
    slow_every: int = 0
    """One in this many samples takes ``slow_by`` times as long; 0: none does."""
    slow_by: float = 1.0

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> ClockedSample:
        cpu_start_s, start_s = thread_time(), perf_counter()
        stretch = self._stretch(index)
        spans = tuple(_clocked(act, stretch) for act in self.acts)
        sleeps_s = stretch * sum(act.sleeps_s for act in self.acts)
        return ClockedSample(index, spans, start_s, perf_counter(), cpu_start_s, sleeps_s)

    def _stretch(self, index: int) -> float:
        # multiples of the golden ratio: evenly distributed over any part of the run
        stretch = 1 + self.jitter * (2 * math.modf(index * 0.6180339887)[0] - 1)
        slow = self.slow_every and index % self.slow_every == self.slow_every - 1
        return stretch * self.slow_by if slow else stretch


def _clocked(act: Act, stretch: float) -> Span:
    start_s = perf_counter()
    parts = act.do(stretch)
    end_s = perf_counter()
    return Span(act.stage, start_s, end_s, sum(len(part) for part in parts), len(parts))


class Mark:
    """Records when it is pickled, unpickled and pinned. One as the first and one as the last
    element of a batch show when torch began and finished with the batch."""

    def __init__(self, pickled_s: float = math.nan, unpickled_s: float = math.nan) -> None:
        self.pickled_s, self.unpickled_s = pickled_s, unpickled_s
        self.pinned_s = math.nan

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickle, (perf_counter(),)

    def pin_memory(self, device: object = None) -> Mark:
        """Record the moment. Torch calls this for any part of a batch that has such a method."""
        self.pinned_s = perf_counter()
        return self


def _unpickle(pickled_s: float) -> Mark:
    return Mark(pickled_s, perf_counter())


@dataclass(frozen=True)
class ClockedFetch:
    """A worker's readings for one batch; moments are on the clock that all processes share."""

    samples: tuple[ClockedSample, ...]
    collate_start_s: float
    collate_end_s: float
    cpu_s: float
    """CPU time of the worker's thread, from the first sample to the end of collate."""

    @property
    def fetch_start_s(self) -> float:
        return self.samples[0].start_s

    @property
    def fetch_end_s(self) -> float:
        return self.samples[-1].end_s

    @property
    def spans(self) -> list[Span]:
        return [span for sample in self.samples for span in sample.spans]

    @property
    def sleeps_s(self) -> float:
        return sum(sample.sleeps_s for sample in self.samples)


class ClockedBatch(NamedTuple):
    """A batch; torch pickles, unpickles and pins the fields in this order."""

    begin: Mark
    fetch: ClockedFetch
    tensors: list[torch.Tensor]
    end: Mark


@dataclass(frozen=True)
class ClockedCollate:
    """A collate function that sleeps, computes in pure Python, and then creates tensors."""

    sleeps_s: float = 0.0
    tensors: int = 1
    values: int = 16
    """Numbers in each tensor."""
    computes_s: float = 0.0
    _recent: deque[list[torch.Tensor]] = field(default_factory=lambda: deque(maxlen=2), repr=False)
    """The tensors of the last two batches. Freeing many tensors takes time, so they are kept until
    they have been sent and are then freed in here, where that is timed."""

    def __call__(self, samples: list[ClockedSample]) -> ClockedBatch:
        start_s = perf_counter()
        if self.sleeps_s:
            sleep(self.sleeps_s)
        end_s = thread_time() + self.computes_s
        while thread_time() < end_s:
            sum(range(500))
        index = float(samples[0].index)
        tensors = [torch.full((self.values,), index) for _ in range(self.tensors)]
        self._recent.append(tensors)
        cpu_s = thread_time() - samples[0].cpu_start_s
        fetch = ClockedFetch(tuple(samples), start_s, perf_counter(), cpu_s)
        return ClockedBatch(Mark(), fetch, tensors, Mark())
