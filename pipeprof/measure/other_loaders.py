"""Measure how long a training step waits for the batches of other loaders.

A loop may take batches from several loaders in each step, as `zip` does. Each of them is profiled
by itself, and to it the waits for the others lie in the step. There they are no training.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable
from math import nan
from typing import Protocol
from weakref import WeakSet

import numpy as np

from pipeprof.measure.rows import Floats, Mask, none_if_nan
from pipeprof.model import OtherLoader


class WaitingLoader(Protocol):
    """A loader for whose batches a loop waits."""

    name: str
    now: Callable[[], float]

    def waits(self) -> Floats:
        """Return when each of the last batches was asked for and delivered: [2, batches], in
        order."""
        ...

    def receiving_s(self) -> float:
        """Return the mean seconds of a wait after the batch had come from its worker."""
        ...

    def made_every_s(self) -> float:
        """Return the mean seconds in which its workers make a batch; NaN where that is unknown."""
        ...

    def fill(self) -> None:
        """Fill in the rows of all batches so far."""
        ...


class _ThisThread(threading.local):
    def __init__(self) -> None:
        self.loaders: WeakSet[WaitingLoader] = WeakSet()


_this_thread = _ThisThread()


def join_loaders(loader: WaitingLoader) -> WeakSet[WaitingLoader]:
    """Add ``loader`` to those that this thread iterates. Returns all of them, later ones too."""
    _this_thread.loaders.add(loader)
    return _this_thread.loaders


class OtherWaits:
    """What the steps on the batches of one loader waited for others."""

    def __init__(self) -> None:
        self._seconds: defaultdict[str, float] = defaultdict(float)
        """Name of another loader → seconds that steps waited for it."""
        self._batches: defaultdict[str, int] = defaultdict(int)
        """Name of another loader → how many of its batches steps took."""

    def add(
        self, others: list[WaitingLoader], delivered_s: Floats, done_s: Floats, trains: Mask
    ) -> Floats:
        """Add the next steps, and return the seconds of each in which it waited for ``others``.

        Args:
            others: All that the loop iterates besides the loader of the steps.
            delivered_s: When each step began.
            done_s: When it ended.
            trains: Which steps have no pause.
        """
        total_s = np.zeros(len(done_s))
        for other in others:
            asked_s, came_s = other.waits()
            if not len(asked_s):
                continue
            moments = np.maximum.accumulate(np.stack([asked_s, came_s], axis=1).ravel())
            until_s = np.cumsum(np.diff(moments, prepend=moments[0]) * ([0, 1] * len(asked_s)))
            before_s, after_s = (np.interp(at, moments, until_s) for at in (delivered_s, done_s))
            waited_s = after_s - before_s
            came_s.sort()
            first, end = (np.searchsorted(came_s, at, "right") for at in (delivered_s, done_s))
            took = end - first
            self._seconds[other.name] += float(waited_s[trains].sum())
            self._batches[other.name] += int(took[trains].sum())
            total_s += np.where(trains, waited_s, 0.0)
        return total_s

    def loaders(self, others: list[WaitingLoader], steps: int) -> tuple[OtherLoader, ...]:
        """Return those of which ``steps`` took batches, longest awaited first."""
        every_s = {each.name: each.made_every_s() for each in others}
        names = sorted(self._batches, key=lambda name: -self._seconds[name])
        return tuple(
            OtherLoader(name, none_if_nan(every_s.get(name, nan) * batches / steps))
            for name in names
            if (batches := self._batches[name])
        )
