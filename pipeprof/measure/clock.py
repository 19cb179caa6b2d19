"""The one clock, and a fake one that ships beside it: analysis and recorder tests never sleep."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    def now(self) -> float:
        """Seconds, monotonic; on one machine the same in every process."""
        ...

    def sleep(self, seconds: float) -> None: ...


class SystemClock:
    """`time.perf_counter`: on Linux CLOCK_MONOTONIC, which all processes share."""

    now = staticmethod(time.perf_counter)
    sleep = staticmethod(time.sleep)


class FakeClock:
    """Time that passes only when told to."""

    def __init__(self, start_s: float = 0.0) -> None:
        self._now = start_s

    def now(self) -> float:
        return self._now

    def sleep(self, seconds: float) -> None:
        self._now += max(0.0, seconds)
