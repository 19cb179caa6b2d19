"""How far a long listing is, for whoever cares to watch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter

Watch = Callable[[str, int], None]
"""Told the URL that is listed, and how many objects were found so far."""

_EVERY_S = 1.0
_watching: list[Watch] = []


@contextmanager
def listing_watched(watch: Watch) -> Iterator[None]:
    """Let ``watch`` hear of listings in the body that take more than a second, each second."""
    _watching.append(watch)
    try:
        yield
    finally:
        _watching.remove(watch)


class Listing:
    """One that goes on."""

    def __init__(self, url: str, clock: Callable[[], float] = perf_counter) -> None:
        self._url, self._clock = url, clock
        self._told_s = clock()

    def found(self, count: int) -> None:
        """So far."""
        if self._clock() - self._told_s >= _EVERY_S:
            self._told_s = self._clock()
            for watch in _watching:
                watch(self._url, count)
