"""Which batches are watched, where to watch all of them would cost too much.

Hooks cost some 50 µs a batch in all processes together: nothing to a batch of 20 ms, and several
per cent of one of 1 ms. So batches are watched in stretches, as many as a small share of the time
pays for: the first stretch from the first batch on, those that follow as they can be afforded. What
is watched is watched whole; the others are only clocked, in main.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

FOREVER = 1 << 40
"""More tasks than there are."""
PAGE = 64
"""Batches after which main looks again whether a stretch can be afforded."""
LONGEST = 256
_SHORTEST = 16
_COST_S = 50e-6
"""Of watching a batch, all processes together, where batches drive the hooks out of the caches:
`python -m benchmarks.overhead`."""
_SHARE = 0.004
"""Of the time that it may cost."""
_MOST = 2 * LONGEST
"""Batches that may be saved up, as while a validation runs."""


def shortest(capacity: int) -> int:
    """Batches of a stretch, of a loader that has so many under way: at the ends of a stretch it is
    not known what workers did before and after."""
    return max(_SHORTEST, 2 * capacity + _SHORTEST // 2)


def affordable(turn_s: float) -> float:
    """The share of batches that is watched in the long run, where each takes so long in turn."""
    return min(1.0, turn_s * _SHARE / _COST_S)


class SamplingBudget:
    """How many batches may be watched: a token bucket."""

    def __init__(self, now: Callable[[], float] = perf_counter) -> None:
        self._now, self._since = now, now()
        self._tokens: float | None = None
        self._watched = 0

    def begin(self, count: int) -> bool:
        """Whether ``count`` batches may be watched from the start of a pass on; of the first pass
        they always may."""
        if self._tokens is None:
            self._tokens = float(count)
        return self.take(count)

    def take(self, count: int) -> bool:
        """Whether so many may be watched now; if so, they count as watched."""
        now = self._now()
        gained = (now - self._since) * _SHARE / _COST_S
        self._tokens, self._since = min(_MOST, (self._tokens or 0.0) + gained), now
        if self._tokens < count:
            return False
        self._tokens -= count
        self._watched += count
        return True

    def next_length(self, least: int) -> int:
        """Of the next stretch: longer as the run gets longer, since its ends are half seen."""
        return max(least, min(LONGEST, self._watched // 2))
