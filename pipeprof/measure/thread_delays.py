"""Read how long the other threads of this process were runnable without a core.

Linux keeps that for each thread (``schedstat``), and forgets it when the thread ends. So it is read
now and then while they run.
"""

from __future__ import annotations

import os
from threading import get_native_id

_TASKS = "/proc/self/task"


class ThreadDelays:
    """Sums the run-queue delay of all threads but the one that asks, from the first `read` on."""

    def __init__(self) -> None:
        self._first: dict[str, int] = {}
        self._last: dict[str, int] = {}
        self._begun = False

    def read(self) -> float | None:
        """Return the sum in seconds; ``None`` where the system does not say."""
        own = str(get_native_id())
        try:
            threads = os.listdir(_TASKS)
        except OSError:
            return None
        for thread in threads:
            delay = _delay_ns(thread) if thread != own else None
            if delay is not None:
                self._first.setdefault(thread, 0 if self._begun else delay)
                self._last[thread] = delay
        self._begun = True
        return sum(last - self._first[thread] for thread, last in self._last.items()) / 1e9


def _delay_ns(thread: str) -> int | None:
    """Return the delay of a thread; ``None`` where it has ended, or the kernel keeps no such
    figure. It avoids ``open``, which is patched while reads are recorded."""
    try:
        descriptor = os.open(f"{_TASKS}/{thread}/schedstat", os.O_RDONLY)
    except OSError:
        return None
    try:
        return int(os.read(descriptor, 128).split()[1])
    except (OSError, ValueError, IndexError):
        return None
    finally:
        os.close(descriptor)
