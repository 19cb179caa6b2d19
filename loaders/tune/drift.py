"""Watches whether the setting that a search chose still feeds the accelerator as it did."""

from __future__ import annotations

from pipeprof.loaders.tune.search import Search
from pipeprof.loaders.tune.stretch_clock import Delivered, StretchClock
from pipeprof.model import Fed

MOST_REPEATS = 3
"""A search is repeated at most so often."""
LEAST_S, LEAST_BY_OTHERS_S = 10.0, 2.0
"""A stretch is at least so long, and where the loop waits for other tuned loaders. Once those are
faster, it may wait for this one."""
_IN_A_ROW = 2
"""So many stretches must differ, one after the other."""
_SLOWER, _STARVED = 0.9, 0.1
"""A stretch differs below this share of the former rate, or if so much more time is waited."""


class DriftWatch:
    """Compares stretches with the first one after the search, or with its last one where other
    loaders may get faster at once."""

    def __init__(self, search: Search) -> None:
        self._search = search
        last = search.last.fed if search.last else None
        by_others = last is not None and self._waits_for_others(last)
        self._clock = self._next_clock(by_others)
        self._before = last if by_others else None
        self._differing = 0
        """Stretches in a row."""

    def interrupt(self) -> None:
        """An epoch begins."""
        self._clock.interrupt()

    def drifted(self, batch: Delivered) -> bool:
        """Note a batch. Return whether the accelerator is starved, and more than before."""
        self._clock.batch(batch)
        if not self._clock.long_enough:
            return False
        now = self._clock.stretch().fed
        self._clock = self._next_clock(self._waits_for_others(now))
        if self._before is None:
            self._before = now
        self._differing = self._differing + 1 if self._is_worse(now, self._before) else 0
        return self._differing >= _IN_A_ROW

    def _waits_for_others(self, now: Fed) -> bool:
        return now.others_fraction > self._search.threshold

    def _next_clock(self, by_others: bool) -> StretchClock:
        return StretchClock(self._search.current, LEAST_BY_OTHERS_S if by_others else LEAST_S)

    def _is_worse(self, now: Fed, before: Fed) -> bool:
        slower = now.batches_per_s < _SLOWER * before.batches_per_s
        starved = now.starved_fraction > before.starved_fraction + _STARVED
        return now.starved_fraction > self._search.threshold and (slower or starved)
