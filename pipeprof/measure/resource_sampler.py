"""What making a batch takes of the machine, looked at now and then: too dear for every batch."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from math import nan
from random import Random
from typing import Any

from pipeprof.measure.clock import SYSTEM_CLOCK, Clock
from pipeprof.measure.finalizer import finalizer
from pipeprof.measure.proc_counters import ThreadProbe, read_gauges
from pipeprof.measure.ring import METERED

SAMPLE_EVERY_S = 0.05
"""On average, for the first `_FIRST` samples: a short run needs them too."""
_FIRST = 20
_SHARE = 0.0003
"""Of the time, that samples may take from then on: warm, one takes 20 to 45 µs; between batches
that drive the system's counters out of the caches, several times that."""
_RAREST_S = 0.5
_SHORTEST_S = 1e-6
WEIGH_EVERY_S = 1.0
_GAUGE_SHARE = 0.0005
"""`read_gauges` walks the page tables: 0.2 to 15 ms. It may take no more of the time than this."""
_FIRST_GAUGE_S = 1.0
"""After the first batch: a shorter run is not to wait for what it is of no use to."""
_UNKNOWN = (nan,) * 3

BatchNbytes = Callable[[Any], tuple[float, float, float]]
"""Tensors in a batch, their bytes, and those of what is beside them."""


class ResourceSampler:
    """Chooses the batches that are sampled, and samples them, in the thread that makes them.

    Which batch is next is drawn by count, not by time: what is drawn by time passes over batches
    that are slow, or meets none but those behind them.
    """

    __slots__ = ("_batch_nbytes", "_batches", "_cpu_now", "_cpu_s", "_first_gauge_s", "_first_s",
                 "_next_gauge_s", "_next_weigh_s", "_now", "_probe", "_random", "_samples",
                 "_thread", "_took_s", "skip")  # fmt: skip

    def __init__(
        self, batch_nbytes: BatchNbytes, whole: bool = False, clock: Clock = SYSTEM_CLOCK
    ) -> None:
        """``whole``: look at all from the first batch on, whatever that costs."""
        self._batch_nbytes = batch_nbytes
        self._now, self._cpu_now = clock.now, clock.cpu_now
        self._first_gauge_s = 0.0 if whole else _FIRST_GAUGE_S
        self._random = Random(0)
        self._probe: ThreadProbe | None = None
        self._thread = 0
        self._cpu_s = 0.0
        self.skip = 0
        """Batches that are not sampled, before the next that is. The caller counts down."""
        self._first_s, self._batches = 0.0, 0
        self._next_gauge_s = self._next_weigh_s = 0.0
        self._samples, self._took_s = 0, 0.0

    def begin(self, now: float) -> None:
        """The batch that is about to be made is sampled."""
        start = self._now()
        self._draw_next(now)
        # a probe reads the counters of the thread that opened it
        thread = threading.get_ident()
        if self._probe is None or thread != self._thread:
            self.close()
            self._probe, self._thread = ThreadProbe(), thread
        self._probe.begin()
        self._samples += 1
        self._took_s += self._now() - start
        self._cpu_s = self._cpu_now()

    def end(self, batch: Any) -> Sequence[float]:
        """That batch is made, or ``None`` when it could not be. In the order of
        `pipeprof.measure.ring.METERED`."""
        cpu_s = self._cpu_now() - self._cpu_s
        if self._probe is None:
            return (nan,) * len(METERED)
        start = self._now()
        resources = self._probe.end()
        now = self._now()
        self._took_s += now - start
        return (cpu_s, *resources, *self._gauges(now), *self._weight(batch, now))

    def _gauges(self, now: float) -> Sequence[float]:
        if now < self._next_gauge_s:
            return _UNKNOWN
        gauges = read_gauges()
        took_s = self._now() - now
        self._next_gauge_s = now + took_s / _GAUGE_SHARE
        return gauges

    def _weight(self, batch: Any, now: float) -> Sequence[float]:
        if batch is None or now < self._next_weigh_s:
            return _UNKNOWN
        start = self._now()
        weight = self._batch_nbytes(batch)
        took_s = self._now() - start
        self._next_weigh_s = now + max(WEIGH_EVERY_S, took_s / _GAUGE_SHARE)
        return weight

    def close(self) -> None:
        if self._probe is not None:
            self._probe.close()
            self._probe = None

    def _draw_next(self, now: float) -> None:
        if self._batches:
            batch_s = (now - self._first_s) / self._batches
            share = min(1.0, max(batch_s, _SHORTEST_S) / self._every_s())
            self.skip = int(self._random.expovariate(1.0) * (1 / share - 1) + 0.5)
        else:
            self._first_s = now
            self._next_gauge_s = now + self._first_gauge_s
        self._batches += self.skip + 1

    def _every_s(self) -> float:
        if self._samples < _FIRST:
            return SAMPLE_EVERY_S
        return min(_RAREST_S, max(SAMPLE_EVERY_S, self._took_s / self._samples / _SHARE))

    __del__ = finalizer(close)
