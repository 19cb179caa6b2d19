"""In the main process: when batches are watched, and when only clocked; see `stretches`."""

from __future__ import annotations

from typing import Any

from pipeprof.loaders.instrument.inline_observer import Observer
from pipeprof.loaders.instrument.sampling import FOREVER, PAGE, SamplingBudget, shortest
from pipeprof.loaders.instrument.worker_observer import WorkersObserver
from pipeprof.measure.ring import Ring


class Pace:
    """Of all passes over one loader: which batches are watched. Each ring holds the tasks of the
    stretch that is watched, or will be next."""

    def __init__(self, whole: bool = False) -> None:
        """``whole``: all of them, whatever that costs."""
        self._whole = whole
        self._budget = SamplingBudget()

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
        if not isinstance(observer, WorkersObserver) or not observer.may_pause:
            return True
        watched = observer.ring.said()[1] > 0
        observer.watch(watched)
        return watched

    def look(self, observer: Observer, iterator: Any, watched: bool) -> tuple[bool, int]:
        """Before a batch is asked for, and its predecessor was ``watched`` or not: whether it is,
        and after how many batches to look again."""
        if not isinstance(observer, WorkersObserver):
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

    def _left(self, observer: WorkersObserver, task: int) -> int:
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

    def _until_next(self, observer: WorkersObserver, iterator: Any) -> int:
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

    def _next_length(self, observer: WorkersObserver) -> int:
        """Of the next stretch; 0 until it can be afforded."""
        if self._whole:
            return FOREVER
        length = self._budget.next_length(shortest(observer.capacity))
        return length if self._budget.take(length) else 0
