"""Sample the resources that making a batch takes, which is too expensive for every batch."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from math import log, nan
from random import Random
from typing import Any

from pipeprof.measure.clock import SYSTEM_CLOCK, Clock
from pipeprof.measure.finalizer import finalizer
from pipeprof.measure.proc_counters import ThreadProbe, read_gauges
from pipeprof.measure.ring import RESOURCE_FIELDS

SAMPLE_EVERY_S = 0.05
"""Mean seconds between the first `_FAST_SAMPLES` samples, so that a short run has some too."""
_FAST_SAMPLES = 20
_SAMPLING_SHARE = 0.0003
"""Later samples take at most this share of the time. One takes 20 to 45 µs with warm caches, and
several times that between batches that use the caches."""
_LONGEST_INTERVAL_S = 0.5
_SHORTEST_BATCH_S = 1e-6
_NBYTES_EVERY_S = 1.0
_GAUGE_SHARE = 0.0005
"""`read_gauges` takes at most this share of the time; one call walks page tables for 0.2 to
15 ms."""
_FIRST_GAUGE_S = 1.0
"""Seconds from the first batch to the first gauges, which a shorter run would not need."""
_UNKNOWN = (nan,) * 3
_random = Random(0).random
"""All samplers draw from it, as making one takes as long as a sample."""

BatchNbytes = Callable[[Any], tuple[float, float, float]]
"""Returns how many tensors a batch has, their bytes, and the bytes of everything else in it."""


class ResourceSampler:
    """Chooses the batches that are sampled, and samples them, in the thread that makes them.

    The next batch is drawn by count, not by time: samples drawn by time would miss slow batches,
    or hit only the batches after them.
    """

    __slots__ = ("_batch_nbytes", "_batches", "_cpu_now", "_cpu_s", "_first_gauge_s", "_first_s",
                 "_next_gauge_s", "_next_nbytes_s", "_now", "_probe", "_samples", "_thread",
                 "_took_s", "_warmup", "skip")  # fmt: skip

    def __init__(
        self,
        batch_nbytes: BatchNbytes,
        whole: bool = False,
        clock: Clock = SYSTEM_CLOCK,
        warmup: int = 1,
    ) -> None:
        """Read gauges from the first batch on where ``whole``, whatever that costs. Few figures are
        made of the first ``warmup`` batches, so the second sample of a fast loader comes next."""
        self._batch_nbytes = batch_nbytes
        self._now, self._cpu_now = clock.now, clock.cpu_now
        self._first_gauge_s = 0.0 if whole else _FIRST_GAUGE_S
        self._probe: ThreadProbe | None = None
        self._thread = 0
        self._cpu_s = 0.0
        self._warmup = warmup
        self.skip = 0
        """Batches before the next one that is sampled. The caller counts down."""
        self._first_s, self._batches = 0.0, 0
        self._next_gauge_s = self._next_nbytes_s = 0.0
        self._samples, self._took_s = 0, 0.0

    def begin(self, now: float) -> None:
        """Begin the sample of a batch, just before it is made at ``now``."""
        start = self._now()
        self._draw_next(now)
        # a probe reads the counters of the thread that opened it
        thread = threading.get_ident()
        if self._probe is None or thread != self._thread:
            self.close()
            self._probe, self._thread = ThreadProbe(), thread
        self._probe.begin()
        self._cpu_s = self._cpu_now()
        self._samples += 1
        self._took_s += self._now() - start

    def end(self, batch: Any, cpu_s: float) -> Sequence[float]:
        """End the sample, when ``batch`` is made, or failed and is ``None``. It took this thread
        ``cpu_s`` seconds of CPU time. Returns values in the order of
        `pipeprof.measure.ring.RESOURCE_FIELDS`."""
        if self._probe is None:
            return (nan,) * len(RESOURCE_FIELDS)
        start, around_s = self._now(), self._cpu_now() - self._cpu_s - cpu_s
        resources = self._probe.end(around_s)
        now = self._now()
        self._took_s += now - start
        if self._batches == 1 and now - self._first_s < SAMPLE_EVERY_S:
            self.skip = self._warmup - 1
            self._batches += self.skip
        return (cpu_s, *resources, *self._gauges(now), *self._nbytes(batch, now))

    def _gauges(self, now: float) -> Sequence[float]:
        if now < self._next_gauge_s:
            return _UNKNOWN
        gauges = read_gauges()
        took_s = self._now() - now
        self._next_gauge_s = now + took_s / _GAUGE_SHARE
        return gauges

    def _nbytes(self, batch: Any, now: float) -> Sequence[float]:
        if batch is None or now < self._next_nbytes_s:
            return _UNKNOWN
        start = self._now()
        nbytes = self._batch_nbytes(batch)
        took_s = self._now() - start
        self._next_nbytes_s = now + max(_NBYTES_EVERY_S, took_s / _GAUGE_SHARE)
        return nbytes

    def close(self) -> None:
        if self._probe is not None:
            self._probe.close()
            self._probe = None

    def _draw_next(self, now: float) -> None:
        if self._batches:
            self.skip = self._drawn((now - self._first_s) / self._batches)
        else:
            self._first_s = now
            self._next_gauge_s = now + self._first_gauge_s
        self._batches += self.skip + 1

    def _drawn(self, batch_s: float) -> int:
        """Return how many batches of ``batch_s`` are not sampled until the next one is."""
        share = min(1.0, max(batch_s, _SHORTEST_BATCH_S) / self._interval_s())
        return int(-log(1.0 - _random()) * (1 / share - 1) + 0.5)  # exponential

    def _interval_s(self) -> float:
        """Return the mean seconds between samples."""
        if self._samples < _FAST_SAMPLES:
            return SAMPLE_EVERY_S
        affordable_s = self._took_s / self._samples / _SAMPLING_SHARE
        return min(_LONGEST_INTERVAL_S, max(SAMPLE_EVERY_S, affordable_s))

    __del__ = finalizer(close)
