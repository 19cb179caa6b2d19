"""What a store's requests are told to: their size, when they were sent, answered and over, retries.

A note is next to free when no loader is being profiled. Otherwise notes wait until the batch is
made for which they were taken, and are then counted by who made it, in a `RequestCounts`.
"""

from __future__ import annotations

import os
from collections import deque
from math import nan
from time import perf_counter, process_time
from types import TracebackType

from pipeprof.measure.proc_counters import threads_waited_s
from pipeprof.measure.stage_timer import Tally, current

Note = tuple[float, float, float, int, int, int, bool]
"""As `note_request` takes it."""

MOST_WAITING = 1 << 16
"""A batch of more requests loses the oldest; how many is known."""

LOOK_EVERY_S = 0.05
_LOOK_SHARE = 0.001
"""Of the time: a look at all threads takes 0.1 to 1 ms, and there are two to a sample."""

waiting: deque[Note] = deque(maxlen=MOST_WAITING)
"""Notes that nobody has counted yet."""

_users = 0
_overflowed = 0


def note_request(
    start_s: float,
    first_byte_s: float,
    end_s: float,
    size: int,
    *,
    retries: int = 0,
    throttled: int = 0,
    failed: bool = False,
) -> None:
    """One request of storage is over, its retries included.

    Moments are those of ``perf_counter``; ``first_byte_s`` is NaN where it is not known. ``size``:
    bytes that came. ``throttled``: answers that asked to slow down. Never raises; from any thread.
    """
    global _overflowed
    if _users:
        if len(waiting) == MOST_WAITING:
            _overflowed += 1
        waiting.append((start_s, first_byte_s, end_s, size, retries, throttled, failed))


def begin_noting() -> None:
    """From now on, until as many calls of `end_noting`, requests of this process are kept."""
    global _users
    _users += 1


def end_noting() -> None:
    global _users
    _users -= 1
    if not _users:
        waiting.clear()


def taken_overflow() -> int:
    """Notes that were lost since the last call."""
    global _overflowed
    lost, _overflowed = _overflowed, 0
    return lost


class StoreTime:
    """While a batch's maker waits for its store: how long that is, and the CPU time of the whole
    process meanwhile. That is the client's, its threads included, and of whatever else runs in
    the process. Now and then it is also seen how long threads waited for a core in it."""

    __slots__ = ("_cpu_s", "_start_s", "_tally", "_waited_s")

    def __init__(self, tally: Tally) -> None:
        self._tally = tally
        start_s = perf_counter()
        self._waited_s = threads_waited_s() if start_s >= _look.next_s else nan
        self._cpu_s, self._start_s = process_time(), perf_counter()

    def end(self) -> None:
        tally, end_s = self._tally, perf_counter()
        took_s = end_s - self._start_s
        tally.store_s += took_s
        tally.store_cpu_s += process_time() - self._cpu_s
        if self._waited_s == self._waited_s:
            # threads that ended meanwhile took with them what they had waited
            waited_s = threads_waited_s() - self._waited_s
            tally.looked_s += took_s
            tally.waited_s += min(max(0.0, waited_s), took_s)
            now = perf_counter()
            _look.next_s = now + max(LOOK_EVERY_S, (now - end_s) / _LOOK_SHARE)


class _Look:
    next_s = 0.0


_look = _Look()


class reading:  # noqa: N801  (as `open` and `stage`: it is used like a function)
    """Around the reads of a store that notes its requests itself, in the thread that makes a
    batch: its `StoreTime`."""

    __slots__ = ("_tally", "_time")

    def __enter__(self) -> None:
        tally = current.tally
        self._time: StoreTime | None = None
        if tally is not None and tally.noting:
            tally.noting = False
            self._tally, self._time = tally, StoreTime(tally)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._time is not None:
            self._time.end()
            self._tally.noting = True


def _forget() -> None:
    """In a child of a process that keeps notes: it keeps its own, if it wants to."""
    global _users, _overflowed
    _users = _overflowed = 0
    waiting.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
