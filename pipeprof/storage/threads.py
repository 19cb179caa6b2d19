"""Threads that do the same work beside their caller, and are gone when they idle.

A process forked while they live has none of them, and starts its own; a loader that forks its
workers a second after a read finds no thread that could be lost.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue

_IDLE_S = 0.5


class Helpers:
    """Of one process: a child must make its own."""

    def __init__(self, idle_s: float = _IDLE_S) -> None:
        self._idle_s = idle_s
        self._jobs: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._lock = threading.Lock()
        self._threads = self._busy = 0

    def beside(self, work: Callable[[], None], count: int) -> None:
        """``work`` in this thread and in ``count`` others; returns when all of them are done.
        It must not raise."""
        ended: SimpleQueue[None] = SimpleQueue()

        def job() -> None:
            work()
            ended.put(None)

        with self._lock:
            self._busy += count
            while self._threads < self._busy:
                self._threads += 1
                threading.Thread(target=self._help, name="pipeprof-read", daemon=True).start()
        for _ in range(count):
            self._jobs.put(job)
        work()
        for _ in range(count):
            ended.get()
        with self._lock:
            self._busy -= count

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
