"""Run the same work in several threads, which end when they are idle.

Threads do not survive a fork. A loader that forks its workers a second after a read finds none
that could be lost.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue

_IDLE_S = 0.5


class HelperThreads:
    """Threads of one process that help their caller; a forked child must create its own."""

    def __init__(self, idle_s: float = _IDLE_S) -> None:
        self._idle_s = idle_s
        self._jobs: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._lock = threading.Lock()
        self._threads = self._busy = 0

    def run(self, work: Callable[[], None], helpers: int) -> None:
        """Call ``work`` in this thread and in ``helpers`` others, and wait for all of them.
        ``work`` must not raise."""
        ended: SimpleQueue[None] = SimpleQueue()

        def job() -> None:
            work()
            ended.put(None)

        with self._lock:
            self._busy += helpers
            while self._threads < self._busy:
                self._threads += 1
                threading.Thread(target=self._help, name="pipeprof-read", daemon=True).start()
        for _ in range(helpers):
            self._jobs.put(job)
        work()
        for _ in range(helpers):
            ended.get()
        with self._lock:
            self._busy -= helpers

    def _help(self) -> None:
        while True:
            try:
                job = self._jobs.get(timeout=self._idle_s)
            except Empty:
                with self._lock:
                    if self._threads > self._busy:
                        self._threads -= 1
                        return
                continue
            job()
            del job  # its closure holds the bytes that were read
