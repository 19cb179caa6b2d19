"""Collect notes of storage requests: when each began and ended, its size and its retries.

A note costs next to nothing when no loader is being profiled. Otherwise it is kept until the batch
that it belongs to is complete. The maker of the batch then counts it in its `RequestCounts`.
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
"""The arguments of `note_request`, in their order."""

MOST_PENDING = 1 << 16
"""A batch with more requests loses the oldest notes; the lost ones are counted."""

_SAMPLE_EVERY_S = 0.05
_SAMPLING_SHARE = 0.001
"""At most this share of the time goes into reading run-queue counters. A sample reads those of all
threads twice, and each takes 0.1 to 1 ms."""

pending_notes: deque[Note] = deque(maxlen=MOST_PENDING)
"""Notes that are not counted yet."""

_users = 0
_lost = 0


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
    """Note a request of storage that has ended, together with its retries.

    Moments are those of ``perf_counter``; ``first_byte_s`` is NaN where it is unknown. ``size`` is
    the bytes received. ``throttled`` counts the answers that asked to slow down. It never raises,
    and any thread may call it.
    """
    global _lost
    if _users:
        if len(pending_notes) == MOST_PENDING:
            _lost += 1
        pending_notes.append((start_s, first_byte_s, end_s, size, retries, throttled, failed))


def begin_noting() -> None:
    """Keep notes in this process, until `end_noting` is called as often as this."""
    global _users
    _users += 1


def end_noting() -> None:
    global _users
    _users -= 1
    if not _users:
        pending_notes.clear()


def take_lost_count() -> int:
    """Return how many notes were lost since the last call."""
    global _lost
    lost, _lost = _lost, 0
    return lost


class StoreTime:
    """Times one wait for a store, from the constructor to `end`, and adds it to a batch's tally.

    It also adds the CPU time of the whole process meanwhile: that of the storage client with its
    threads, and of whatever else runs. Now and then it samples how long threads waited for a core.
    """

    __slots__ = ("_cpu_s", "_start_s", "_tally", "_waited_s")

    def __init__(self, tally: Tally) -> None:
        self._tally = tally
        start_s = perf_counter()
        self._waited_s = threads_waited_s() if start_s >= _run_queue_sampling.next_s else nan
        self._cpu_s, self._start_s = process_time(), perf_counter()

    def end(self) -> None:
        tally, end_s = self._tally, perf_counter()
        took_s = end_s - self._start_s
        tally.store_s += took_s
        tally.store_cpu_s += process_time() - self._cpu_s
        if self._waited_s == self._waited_s:
            # the sum shrinks when a thread ends meanwhile
            waited_s = threads_waited_s() - self._waited_s
            tally.looked_s += took_s
            tally.waited_s += min(max(0.0, waited_s), took_s)
            now = perf_counter()
            every_s = max(_SAMPLE_EVERY_S, (now - end_s) / _SAMPLING_SHARE)
            _run_queue_sampling.next_s = now + every_s


class _RunQueueSampling:
    next_s = 0.0


_run_queue_sampling = _RunQueueSampling()


class reading:  # noqa: N801  (as `open` and `stage`: it is used like a function)
    """A context manager that times reads with `StoreTime`, for stores that note their own requests.
    It takes effect in a thread that makes a profiled batch, once where several are nested."""

    __slots__ = ("_tally", "_time")

    def __enter__(self) -> None:
        tally = current.tally
        self._time: StoreTime | None = None
        if tally is not None and tally.note_requests:
            tally.note_requests = False
            self._tally, self._time = tally, StoreTime(tally)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._time is not None:
            self._time.end()
            self._tally.note_requests = True


def _reset_after_fork() -> None:
    """Drop the parent's notes in a forked child, which begins to note anew if it needs to."""
    global _users, _lost
    _users = _lost = 0
    pending_notes.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)
