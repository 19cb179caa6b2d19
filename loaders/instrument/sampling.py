"""Which batches are watched, where to watch all of them would cost too much.

Hooks cost some 50 µs a batch in all processes together: nothing to a batch of 20 ms, and several
per cent of one of 1 ms. So batches are watched in stretches, as many as a small share of the time
pays for: the first stretch from the first batch on, those that follow as they can be afforded. What
is watched is watched whole; the others are only clocked, in main.
"""

from __future__ import annotations

from typing import Any

from pipeprof.loaders.instrument.inline_observer import Observer
from pipeprof.loaders.instrument.worker_observer import WorkerObserver
from pipeprof.measure.clock import SYSTEM_CLOCK, Clock
from pipeprof.measure.ring import Ring

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

    def __init__(self, clock: Clock = SYSTEM_CLOCK) -> None:
        self._now, self._since = clock.now, clock.now()
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


class SamplingSchedule:
    """Of all passes over one loader: which batches are watched. Each ring holds the tasks of the
    stretch that is watched, or will be next."""

    def __init__(self, whole: bool = False, clock: Clock = SYSTEM_CLOCK) -> None:
        """``whole``: all of them, whatever that costs."""
        self._whole = whole
        self._budget = SamplingBudget(clock)

    def begin(self, ring: Ring, capacity: int) -> None:
        """A pass begins, with ``capacity`` batches under way; its workers are to hear of it before
        they make any."""
        length = shortest(capacity)
        if self._whole:
            length = FOREVER
        elif not self._budget.begin(length):
            length = 0
        ring.say(0, length)

    def watch_all(self) -> None:
        """From the next look on, and in later passes."""
        self._whole = True

    def start(self, observer: Observer) -> bool:
        """Whether the first batch of a pass, which is asked for next, is watched."""
        if not isinstance(observer, WorkerObserver) or not observer.may_pause:
            return True
        watched = observer.ring.said()[1] > 0
        observer.watch(watched)
        return watched

    def look(self, observer: Observer, iterator: Any, watched: bool) -> tuple[bool, int]:
        """Before a batch is asked for, and its predecessor was ``watched`` or not: whether it is,
        and after how many batches to look again."""
        if not isinstance(observer, WorkerObserver):
            return True, PAGE
        if not observer.may_pause or observer.ring.says_what_it_does():
            self._whole = True
        if watched:
            left = self._left(observer, iterator._rcvd_idx)
            if left > 0:
                return True, left
            observer.watch(False)
        left = self._until_next(observer, iterator)
        return (False, left) if left > 0 else (True, self._left(observer, iterator._rcvd_idx))

    def _left(self, observer: WorkerObserver, task: int) -> int:
        """Of the stretch that is watched, from ``task`` on: batches until the next look; 0 at its
        end. It is prolonged if that can be afforded."""
        ring, (first, end) = observer.ring, observer.ring.said()
        if self._whole:
            if end != FOREVER:
                ring.say(first, FOREVER)
            return PAGE
        # workers are so far ahead; they hear of it before they take their hooks off
        left = end - observer.capacity - observer.workers - task
        if left > 0 or task >= end:
            return max(0, left)
        length = shortest(observer.capacity)
        if not self._budget.take(length):
            return end - task
        ring.say(first, end + length)
        return length

    def _until_next(self, observer: WorkerObserver, iterator: Any) -> int:
        """Batches until the next stretch, or until it is worth to look again; 0 where it begins."""
        task: int = iterator._rcvd_idx
        first, end = observer.ring.said()
        if task >= end:
            length = self._next_length(observer)
            if not length:
                return PAGE
            # no worker has been sent these, and each of them is sent another before
            first = iterator._send_idx + observer.capacity
            observer.ring.say(first, first + length)
            observer.watch(True)  # what is under way now comes half seen
        return max(0, first - task)

    def _next_length(self, observer: WorkerObserver) -> int:
        """Of the next stretch; 0 until it can be afforded."""
        if self._whole:
            return FOREVER
        length = self._budget.next_length(shortest(observer.capacity))
        return length if self._budget.take(length) else 0
