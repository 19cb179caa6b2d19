"""Tell an error of the script's own loader from one of pipeprof's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any


class GuardedStart:
    """Starts the script's iterator, and remembers it or that the start failed."""

    def __init__(self, start: Callable[[], Iterator[Any]]) -> None:
        self._start = start
        self.iterator: Iterator[Any] | None = None
        self.failed = False

    def __call__(self) -> Iterator[Any]:
        try:
            self.iterator = self._start()
        except BaseException:
            self.failed = True
            raise
        return self.iterator
