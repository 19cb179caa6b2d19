"""Report the progress of long listings to whoever watches them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter

Watch = Callable[[str, int], None]
"""Receives the URL that is listed, and how many objects were found so far."""

_REPORT_EVERY_S = 1.0
_watches: list[Watch] = []


@contextmanager
def listing_watched(watch: Watch) -> Iterator[None]:
    """Call ``watch`` once a second for each listing in the body that takes longer than that."""
    _watches.append(watch)
    try:
        yield
    finally:
        _watches.remove(watch)


class Listing:
    """One listing in progress."""

    def __init__(self, url: str, clock: Callable[[], float] = perf_counter) -> None:
        self._url, self._clock = url, clock
        self._reported_s = clock()

    def found(self, count: int) -> None:
        """Report that ``count`` objects were found so far, at most once a second."""
        if self._clock() - self._reported_s >= _REPORT_EVERY_S:
            self._reported_s = self._clock()
            for watch in _watches:
                watch(self._url, count)
