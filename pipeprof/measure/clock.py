"""The clock that everything is measured by, and a fake one, with which tests need not sleep."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Tells wall time and CPU time, in seconds."""

    def now(self) -> float:
        """Return monotonic seconds, which are the same in all processes of a machine."""
        ...

    def cpu_now(self) -> float:
        """Return the CPU seconds that this thread has used."""
        ...

    def sleep(self, seconds: float) -> None: ...


class SystemClock:
    """The clock of `time.perf_counter`: on Linux CLOCK_MONOTONIC, which all processes share."""

    now = staticmethod(time.perf_counter)
    cpu_now = staticmethod(time.thread_time)
    sleep = staticmethod(time.sleep)


SYSTEM_CLOCK = SystemClock()


class FakeClock:
    """A clock that advances only in `sleep` and `compute`."""

    def __init__(self, start_s: float = 0.0) -> None:
        self._now, self._cpu = start_s, 0.0

    def now(self) -> float:
        return self._now

    def cpu_now(self) -> float:
        return self._cpu

    def sleep(self, seconds: float) -> None:
        self._now += max(0.0, seconds)

    def compute(self, seconds: float) -> None:
        """Advance the time of the clock and the CPU time of the thread."""
        self.sleep(seconds)
        self._cpu += max(0.0, seconds)
