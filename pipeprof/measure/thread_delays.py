"""Read how long the other threads of this process were runnable without a core.

Linux keeps that for each thread (``schedstat``), and forgets it when the thread ends. So it is read
now and then while they run.
"""

from __future__ import annotations

import os
from threading import get_native_id


class ThreadDelays:
    """Sums the run-queue delay of all threads but the one that asks, from the first `read` on."""

    def __init__(self, tasks: str = "/proc/self/task") -> None:
        self._tasks = tasks
        self._known: dict[str, int] | None = None
        """Live thread → its delay when it was last read."""
        self._sum_ns = 0

    def read(self) -> float | None:
        """Return the sum in seconds; ``None`` where the system does not say."""
        own = str(get_native_id())
        try:
            threads = os.listdir(self._tasks)
        except OSError:
            return None
        delays = {thread: self._delay_ns(thread) for thread in threads if thread != own}
        known = {thread: delay for thread, delay in delays.items() if delay is not None}
        if delays and not known:
            return None
        if self._known is not None:
            before = self._known
            self._sum_ns += sum(delay - before.get(each, 0) for each, delay in known.items())
        self._known = known
        return self._sum_ns / 1e9

    def _delay_ns(self, thread: str) -> int | None:
        """Return the delay of a thread; ``None`` where it has ended, or the kernel keeps no such
        figure. It avoids ``open``, which is patched while reads are recorded."""
        try:
            descriptor = os.open(f"{self._tasks}/{thread}/schedstat", os.O_RDONLY)
        except OSError:
            return None
        try:
            return int(os.read(descriptor, 128).split()[1])
        except (OSError, ValueError, IndexError):
            return None
        finally:
            os.close(descriptor)
