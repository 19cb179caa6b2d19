"""Where the training loop does something else than train: what is known of it exactly.

Each thread has its passes over profiled loaders under way. What is iterated or named in a thread is
noted at those that it began before, and these find out, when they have time, in which of their
steps it lies.
"""

from __future__ import annotations

import logging
import threading
import weakref
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from math import nan
from time import perf_counter
from typing import Protocol

import numpy as np

from pipeprof.log import suppress_and_log
from pipeprof.measure.rows import Floats
from pipeprof.model import PauseKind

_log = logging.getLogger(__name__)

MOST_NOTES = 4096
"""Of a pass, until they are looked through: the oldest are forgotten."""
_MOST_NAMES = 50
_USUAL = 0.5
"""Of the steps: where another loader is iterated in so many, that is part of the step."""


@dataclass(frozen=True)
class Interval:
    """Of a pass's own clock."""

    begin_s: float
    end_s: float
    kind: PauseKind


class PauseNote(Protocol):
    """May be a pause."""

    @property
    def begin_s(self) -> float: ...

    def within(self, begin_s: float, end_s: float) -> Interval | None:
        """The part of it that is a pause of the step with these ends, in which it begins."""
        ...


class Listener(Protocol):
    """A pass under way."""

    def hear(self, note: PauseNote) -> None: ...


class _Here(threading.local):
    def __init__(self) -> None:
        self.passes: list[weakref.ref[Listener]] = []


_here = _Here()


def begin(listener: Listener) -> None:
    """A pass begins in this thread, until it is gone."""
    _here.passes = [each for each in _here.passes if each() is not None]
    _here.passes.append(weakref.ref(listener))


def tell(note: PauseNote) -> None:
    """To the passes that this thread began."""
    for each in _here.passes:
        listener = each()
        if listener is not None:
            listener.hear(note)


def pause(name: str = "pause") -> NamedPause:
    """Keep the body of a ``with`` out of the training step: validation, a checkpoint, logging.

    Verdict, ceilings, predictions and advice are then of training alone; reports show pauses
    apart. It counts for the loaders that this thread iterates, and costs next to nothing where
    there is none. A loop over another profiled loader needs none, as it is recognised.

    Args:
        name: Shown in reports.

    Returns:
        A context manager.

    Examples:
        >>> for batch in loader:
        ...     train_step(batch)
        ...     if time_to_save():
        ...         with pipeprof.pause("checkpoint"):
        ...             save()
    """
    return NamedPause(str(name))


class NamedPause:
    """Made by `pause`. Not to be entered twice at once."""

    __slots__ = ("_begin_s", "_name")

    def __init__(self, name: str) -> None:
        self._name = name
        self._begin_s = 0.0

    def __enter__(self) -> None:
        self._begin_s = perf_counter()

    def __exit__(self, *error: object) -> None:
        if _here.passes:
            with suppress_and_log(_log, "a pause is not recorded"):
                tell(Named(self._begin_s, perf_counter(), PauseKind(self._name, "named")))


class Named(Interval):
    """By the user: whatever of it lies in the step."""

    def within(self, begin_s: float, end_s: float) -> Interval | None:
        return Interval(self.begin_s, min(self.end_s, end_s), self.kind)


class PauseLog:
    """Of one recorder: which pauses lie in which steps, and their kinds."""

    def __init__(self) -> None:
        self.kinds: list[PauseKind] = []
        self._steps = self._with_loader = 0

    def of_steps(self, heard: deque[PauseNote], delivered_s: Floats, done_s: Floats) -> Floats:
        """[steps, 2]: seconds of pause in each of the next steps, and its place in `kinds`; NaN
        where there was none. Takes from ``heard`` what lies in them, or before."""
        table = np.full((len(done_s), 2), nan)
        self._steps += len(done_s)
        found = _by_step(heard, delivered_s, done_s) if heard else {}
        of_loader = [place for place, notes in found.items() if any(map(_of_loader, notes))]
        self._with_loader += len(of_loader)
        if self._with_loader >= _USUAL * self._steps:
            for place in of_loader:
                found[place] = [note for note in found[place] if not _of_loader(note)]
        for place, notes in found.items():
            if notes:
                table[place] = _together_s(notes), self._place(_longest(notes).kind)
        return table

    def _place(self, kind: PauseKind) -> int:
        if kind not in self.kinds:
            if len(self.kinds) >= _MOST_NAMES:
                return _MOST_NAMES - 1
            last = len(self.kinds) == _MOST_NAMES - 1
            self.kinds.append(PauseKind("others", "named") if last else kind)
            return len(self.kinds) - 1
        return self.kinds.index(kind)


def _by_step(
    heard: deque[PauseNote], delivered_s: Floats, done_s: Floats
) -> dict[int, list[Interval]]:
    found: dict[int, list[Interval]] = {}
    for _ in range(len(heard)):
        note = heard.popleft()
        if note.begin_s >= done_s[-1]:
            heard.append(note)
            continue
        place = int(np.searchsorted(delivered_s, note.begin_s, side="right")) - 1
        if place >= 0 and note.begin_s < done_s[place]:
            interval = note.within(float(delivered_s[place]), float(done_s[place]))
            if interval is not None and interval.end_s > interval.begin_s:
                found.setdefault(place, []).append(interval)
    return found


def _of_loader(note: Interval) -> bool:
    return note.kind.evidence == "loader"


def _longest(notes: Sequence[Interval]) -> Interval:
    return max(notes, key=lambda note: note.end_s - note.begin_s)


def _together_s(notes: Sequence[Interval]) -> float:
    """That ``notes`` cover, which may lie within one another."""
    covered_s, until_s = 0.0, float("-inf")
    for note in sorted(notes, key=lambda note: note.begin_s):
        covered_s += max(0.0, note.end_s - max(note.begin_s, until_s))
        until_s = max(until_s, note.end_s)
    return covered_s
