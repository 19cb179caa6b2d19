"""The one clock, and a fake one that ships beside it: analysis and recorder tests never sleep."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    def now(self) -> float:
        """Seconds, monotonic; on one machine the same in every process."""
        ...

    def cpu_now(self) -> float:
        """Seconds for which this thread had a core."""
        ...

    def sleep(self, seconds: float) -> None: ...


class SystemClock:
    """`time.perf_counter`: on Linux CLOCK_MONOTONIC, which all processes share."""

    now = staticmethod(time.perf_counter)
    cpu_now = staticmethod(time.thread_time)
    sleep = staticmethod(time.sleep)


SYSTEM_CLOCK = SystemClock()


class FakeClock:
    """Time that passes only when told to."""

    def __init__(self, start_s: float = 0.0) -> None:
        self._now, self._cpu = start_s, 0.0

    def now(self) -> float:
        return self._now

    def cpu_now(self) -> float:
        return self._cpu

    def sleep(self, seconds: float) -> None:
        self._now += max(0.0, seconds)

    def compute(self, seconds: float) -> None:
        """As `sleep`, but on a core."""
        self.sleep(seconds)
        self._cpu += max(0.0, seconds)
