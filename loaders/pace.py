"""In the main process: when batches are watched, and when only clocked; see `stretches`."""

from __future__ import annotations

from typing import Any

from pipeprof.loaders.observe import Observer
from pipeprof.loaders.observe_workers import WorkersObserver
from pipeprof.loaders.stretches import FOREVER, PAGE, Budget, says_what_it_does, shortest
from pipeprof.measure.recorder import Pass
from pipeprof.measure.ring import Ring
from pipeprof.measure.rows import Unwatched


class Pace:
    """Of all passes over one loader: which batches are watched."""

    def __init__(self, whole: bool = False) -> None:
        """``whole``: all of them, whatever that costs."""
        self._whole = whole
        self._budget = Budget()
        self._asked = False
        """Whether the data set says what it does: to find out takes half a millisecond."""
        self._unasked: WorkersObserver | None = None
        """Of the pass that would tell."""
        self._first = self._end = 0
        """Tasks of the stretch that is watched, or will be next."""

    def begin(self, ring: Ring, capacity: int) -> None:
        """A pass begins, with ``capacity`` batches under way; its workers are to hear of it before
        they make any."""
        length = shortest(capacity)
        if self._unasked is not None and self._says(self._unasked, range(length)):
            self._whole = True
        if self._whole:
            length = FOREVER
        elif not self._budget.begin(length):
            length = 0
        self._say(ring, 0, length)

    def resume(self, ring: Ring) -> None:
        """A pass begins whose workers are under way already."""
        self._first, self._end = ring.writer(0).heard()

    def watch_all(self) -> None:
        """From the next look on, and in later passes."""
        self._whole = True

    def start(self, turn: Pass, observer: Observer) -> None:
        """The first batch of a pass is asked for next."""
        turn.source = observer.source()
        if not isinstance(observer, WorkersObserver):
            return
        if not self._end and observer.may_pause:
            self._stop(turn, observer)
        elif not self._asked:
            self._unasked = observer

    def look(self, turn: Pass, observer: Observer, iterator: Any) -> int:
        """Before a batch is asked for: begin or end a stretch, if it is time. After how many
        batches to look again."""
        if not isinstance(observer, WorkersObserver):
            return PAGE
        if not observer.may_pause:
            self.watch_all()
        if isinstance(turn.source, Unwatched):
            return self._unwatched(turn, observer, iterator)
        return self._watched(turn, observer, iterator)

    def _watched(self, turn: Pass, observer: WorkersObserver, iterator: Any) -> int:
        if self._whole:
            if self._end != FOREVER:
                self._say(observer.ring, self._first, FOREVER)
            return PAGE
        task: int = iterator._rcvd_idx
        # workers are so far ahead; they hear of it before they take their hooks off
        left = self._end - observer.capacity - observer.workers - task
        if left > 0:
            return left
        if task >= self._end:
            turn.flush()
            self._stop(turn, observer)
            return self._unwatched(turn, observer, iterator)
        length = shortest(observer.capacity)
        if self._says(observer, range(max(self._first, task - length), task)):
            self.watch_all()
            return self._watched(turn, observer, iterator)
        if self._budget.take(length):
            self._say(observer.ring, self._first, self._end + length)
            return length
        return self._end - task

    def _says(self, observer: WorkersObserver, tasks: range) -> bool:
        self._asked, self._unasked = True, None
        return says_what_it_does(observer.told(tasks))

    def _unwatched(self, turn: Pass, observer: WorkersObserver, iterator: Any) -> int:
        task: int = iterator._rcvd_idx
        if task >= self._end:
            length = self._next_length(observer)
            if not length:
                return PAGE
            # no worker has been sent these, and each of them is sent another before
            first = iterator._send_idx + observer.capacity
            self._say(observer.ring, first, first + length)
            observer.watch(True)  # what is under way now comes half seen
        if task < self._first:
            return self._first - task
        turn.flush()
        observer.forget()
        turn.source = observer.source()
        return self._watched(turn, observer, iterator)

    def _next_length(self, observer: WorkersObserver) -> int:
        """Of the next stretch; 0 until it can be afforded."""
        if self._whole:
            return FOREVER
        length = self._budget.next_length(shortest(observer.capacity))
        return length if self._budget.take(length) else 0

    def _stop(self, turn: Pass, observer: WorkersObserver) -> None:
        turn.source = Unwatched()
        observer.watch(False)

    def _say(self, ring: Ring, first: int, end: int) -> None:
        self._first, self._end = first, end
        ring.say(first, end)
