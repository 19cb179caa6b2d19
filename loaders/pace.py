"""In the main process: when batches are watched, and when they are passed by; see `stretches`."""

from __future__ import annotations

from typing import Any

from pipeprof.loaders.observe import Observer
from pipeprof.loaders.observe_workers import WorkersObserver
from pipeprof.loaders.stretches import FOREVER, PAGE, Budget, says_what_it_does, shortest
from pipeprof.measure.recorder import Pass
from pipeprof.measure.ring import Ring


class Pace:
    """Of all passes over one loader: which batches are watched."""

    def __init__(self, whole: bool = False) -> None:
        """``whole``: all of them, whatever that costs."""
        self._whole = whole
        self._budget = Budget()
        self._first = self._end = 0
        """Tasks of the stretch that is watched."""

    def begin(self, ring: Ring, capacity: int) -> None:
        """A pass begins, with ``capacity`` batches under way; its workers are to hear of it before
        they make any."""
        length = shortest(capacity)
        if self._whole:
            length = FOREVER
        elif not self._budget.begin(length):
            length = 0
        self._say(ring, 0, length)

    def resume(self, ring: Ring) -> None:
        """A pass begins whose workers are under way already."""
        self._first, self._end = ring.writer(0).heard()

    def watch_all(self, observer: Observer) -> None:
        """From now on, and in later passes."""
        self._whole = True
        if isinstance(observer, WorkersObserver):
            self._say(observer.ring, self._first, FOREVER)

    def from_start(self, turn: Pass, observer: Observer, iterator: Any) -> PassingBy | None:
        """What is to be passed by from the first batch on, if anything is."""
        if self._end or not isinstance(observer, WorkersObserver):
            return None
        if not observer.may_pause:
            self.watch_all(observer)
            return None
        return PassingBy(self, turn, observer, iterator)

    def look(self, turn: Pass, observer: Observer, iterator: Any) -> PassingBy | int:
        """Once a page of batches was watched: what is to be passed by from the next on, or after
        how many to look again."""
        if not isinstance(observer, WorkersObserver) or self._end == FOREVER:
            return PAGE
        task: int = iterator._rcvd_idx
        if not observer.may_pause:
            self.watch_all(observer)
            return PAGE
        length = shortest(observer.capacity)
        # workers are so far ahead; they hear of it before they take their hooks off
        left = self._end - observer.capacity - observer.workers - task
        if left > 0:
            return left
        if task < self._end:
            if says_what_it_does(observer.told(range(max(self._first, task - length), task))):
                self.watch_all(observer)
                return PAGE
            if self._budget.take(length):
                self._say(observer.ring, self._first, self._end + length)
                return length
            return self._end - task
        return PassingBy(self, turn, observer, iterator)

    def next_stretch(self, observer: WorkersObserver, iterator: Any) -> int | None:
        """The task with which the next one begins, if it can be afforded: one that no worker has
        been sent, and before which each of them is sent another."""
        length = self._budget.next_length(shortest(observer.capacity))
        if not self._budget.take(length):
            return None
        first = iterator._send_idx + observer.capacity
        self._say(observer.ring, first, first + length)
        return int(first)

    def _say(self, ring: Ring, first: int, end: int) -> None:
        self._first, self._end = first, end
        ring.say(first, end)


class PassingBy:
    """Batches of which nothing is noted."""

    __slots__ = ("_begins", "_first", "_iterator", "_observer", "_pace", "_turn", "until")

    def __init__(self, pace: Pace, turn: Pass, observer: WorkersObserver, iterator: Any) -> None:
        self._pace, self._turn = pace, turn
        self._observer, self._iterator = observer, iterator
        self._first = iterator._rcvd_idx
        self._begins: int | None = None
        """The task with which the next stretch begins."""
        self.until = 0
        """The task before which `over` need not be asked."""

    def count(self) -> int:
        """Batches passed by so far."""
        return int(self._iterator._rcvd_idx - self._first)

    def over(self) -> bool:
        """Whether the batch that is asked for now is to be noted again."""
        if not self.until:  # until now the step on the last batch that was noted was running
            self._turn.ask()
            self._turn.flush()
            self._observer.watch(False)
        task = self._iterator._rcvd_idx
        if self._begins is None:
            self._begins = self._pace.next_stretch(self._observer, self._iterator)
            if self._begins is None:
                self.until = task + PAGE
                return False
            self._observer.watch(True)  # what is under way now comes half seen
            self.until = self._begins
        if task < self._begins:
            return False
        self._observer.forget()
        return True
