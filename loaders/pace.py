"""In the main process: when batches are passed by, see `stretches`."""

from __future__ import annotations

from typing import Any

from pipeprof.loaders.observe import Observer
from pipeprof.loaders.observe_workers import WorkersObserver
from pipeprof.loaders.stretches import FIRST, how_many, next_watched, watched
from pipeprof.measure.recorder import Pass
from pipeprof.measure.ring import Ring
from pipeprof.measure.rows import Floats

_ENOUGH = 128
"""Rows by which to judge how fast a loader is."""


class Pace:
    """Of all passes over one loader: of how many stretches one is watched."""

    def __init__(self, whole: bool = False) -> None:
        """``whole``: all of them, whatever that costs."""
        self._whole = whole
        self._every = 1
        self._judged: Floats | None = None

    def say(self, ring: Ring) -> None:
        """To workers that are about to start."""
        ring.say(self._every)

    def pass_by(self, turn: Pass, observer: Observer, iterator: Any) -> PassingBy | None:
        """What is to be passed by from the next batch on, if anything is."""
        if self._whole or not isinstance(observer, WorkersObserver) or not observer.may_pause:
            return None
        task, before = iterator._rcvd_idx, self._every
        if watched(task, before) and (before > 1 or turn.nth <= FIRST):
            return None
        # only where a stretch ends: workers that run ahead hear of it while nobody watches
        self._judge(turn.last_rows, observer)
        if self._every == before == 1:
            return None
        return PassingBy(turn, observer, iterator, next_watched(task, self._every))

    def _judge(self, rows: Floats, observer: WorkersObserver) -> None:
        """How fast the loader is by now."""
        if rows is self._judged or len(rows) < _ENOUGH:
            return
        self._judged, self._every = rows, how_many(rows)
        observer.say(self._every)


class PassingBy:
    """Batches of which nothing is noted."""

    __slots__ = ("_end", "_ending", "_first", "_iterator", "_observer", "_turn", "until")

    def __init__(self, turn: Pass, observer: WorkersObserver, iterator: Any, end: int) -> None:
        """Up to the task ``end``, and what is under way then."""
        self._turn, self._observer, self._iterator = turn, observer, iterator
        self._first, self._end = iterator._rcvd_idx, end
        self._ending = False
        self.until = 0
        """The task before which `over` need not be asked."""

    def count(self) -> int:
        """Batches passed by so far."""
        return int(self._iterator._rcvd_idx - self._first)

    def over(self) -> bool:
        """Whether the batch that is asked for now is to be noted again."""
        if not self.until:  # until now the step on the last batch that was noted was running
            self.until = self._end
            self._turn.ask()
            self._turn.flush()
            self._observer.watch(False)
        if self._iterator._rcvd_idx >= self.until and not self._ending:
            # what is under way now comes half seen
            self._ending, self.until = True, self._iterator._send_idx
            self._observer.watch(True)
        if self._iterator._rcvd_idx < self.until:
            return False
        self._observer.forget()
        return True
