"""Find the pauses of a training loop: named by a framework or the user, or loops over another
profiled loader.

Each such event is noted at all running passes of its thread. Later each pass finds out in which of
its steps the event lies.
"""

from __future__ import annotations

import logging
import threading
import weakref
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass
from math import nan
from time import perf_counter
from typing import Protocol

import numpy as np

from pipeprof.log import suppress_and_log
from pipeprof.measure.rows import Floats
from pipeprof.model import BY_LENGTH, PauseKind

_log = logging.getLogger(__name__)

MOST_NOTES = 4096
"""A pass keeps at most so many notes until it evaluates them; the oldest are dropped."""
_MOST_KINDS = 50
_RANK = {"framework": 2, "named": 1}
"""Evidence that gives a pause its name before other evidence does."""
_PART_OF_STEP = 0.5
"""What runs in at least this share of the steps, a loop over another loader or the framework's
logging, is part of the step and no pause."""


@dataclass(frozen=True)
class Interval:
    """A span of time on the clock of the passes, and the kind of pause that it is."""

    begin_s: float
    end_s: float
    kind: PauseKind


class PauseNote(Protocol):
    """An event that may be a pause."""

    @property
    def begin_s(self) -> float: ...

    def pause_within(self, begin_s: float, end_s: float) -> Interval | None:
        """Return the part of the event that is a pause of the step in which it begins. ``begin_s``
        and ``end_s`` are the step's ends; ``None`` is returned where it is no pause."""
        ...


class Listener(Protocol):
    """A running pass, which keeps notes."""

    def add_note(self, note: PauseNote) -> None: ...


class _ThisThread(threading.local):
    def __init__(self) -> None:
        self.passes: list[weakref.ref[Listener]] = []


_this_thread = _ThisThread()


def listen(listener: Listener) -> None:
    """Send notes of this thread to a pass for as long as that exists."""
    others = [each for each in _this_thread.passes if each() not in (None, listener)]
    _this_thread.passes = [*others, weakref.ref(listener)]


def announce(note: PauseNote) -> None:
    """Send a note to all passes that this thread began."""
    for each in _this_thread.passes:
        listener = each()
        if listener is not None:
            listener.add_note(note)


def pause(name: str = "pause") -> NamedPause:
    """Keep the body of a ``with`` out of the training step: validation, a checkpoint, logging.

    Verdict, ceilings, predictions and advice are then about training alone, and reports show
    pauses separately. A pause counts for the loaders that this thread iterates, and costs next to
    nothing without one. A loop over another profiled loader is recognised without it.

    Args:
        name: The name of the pause in reports.

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
    """The context manager that `pause` returns. It cannot be entered again before it is left."""

    __slots__ = ("_begin_s", "_name")

    def __init__(self, name: str) -> None:
        self._name = name
        self._begin_s = 0.0

    def __enter__(self) -> None:
        self._begin_s = perf_counter()

    def __exit__(self, *error: object) -> None:
        if _this_thread.passes:
            with suppress_and_log(_log, "a pause is not recorded"):
                kind = PauseKind(self._name, "named")
                announce(NamedInterval(self._begin_s, perf_counter(), kind))


def announce_phase(name: str, begin_s: float) -> None:
    """Announce a phase of a training framework, from ``begin_s`` on the clock of the passes until
    now."""
    if _this_thread.passes:
        with suppress_and_log(_log, "a pause is not recorded"):
            announce(NamedInterval(begin_s, perf_counter(), PauseKind(name, "framework")))


class NamedInterval(Interval):
    """A pause that has a name; the part of it in the step counts."""

    def pause_within(self, begin_s: float, end_s: float) -> Interval | None:
        return Interval(self.begin_s, min(self.end_s, end_s), self.kind)


class PauseLog:
    """Assigns pauses to the steps of one recorder, and collects their kinds."""

    def __init__(self) -> None:
        self.kinds: list[PauseKind] = []
        self._steps = 0
        self._steps_with: Counter[PauseKind] = Counter()
        """Number of steps in which there was a pause of a kind that nobody declared."""

    def of_steps(self, notes: deque[PauseNote], delivered_s: Floats, done_s: Floats) -> Floats:
        """Return the pauses of the next steps as [steps, 2]: seconds, and the index in `kinds`.

        Both are NaN for a step without a pause. Notes of what began before the last step's end
        are removed from ``notes``.
        """
        table = np.full((len(done_s), 2), nan)
        self._steps += len(done_s)
        by_step = _by_step(notes, delivered_s, done_s) if notes else {}
        for found in by_step.values():
            self._steps_with.update({each.kind for each in found if each.kind.evidence != "named"})
        for step, pauses in by_step.items():
            if found := [each for each in pauses if not self._is_part_of_step(each.kind)]:
                covered_s = _covered_s(found)
                table[step] = covered_s, self._index(_main_kind(found, covered_s))
        return table

    def _is_part_of_step(self, kind: PauseKind) -> bool:
        return self._steps_with[kind] >= _PART_OF_STEP * self._steps

    def _index(self, kind: PauseKind) -> int:
        if kind.evidence == "length":
            return BY_LENGTH
        if kind not in self.kinds:
            if len(self.kinds) >= _MOST_KINDS:
                return _MOST_KINDS - 1
            last = len(self.kinds) == _MOST_KINDS - 1
            self.kinds.append(PauseKind("others", "named") if last else kind)
            return len(self.kinds) - 1
        return self.kinds.index(kind)


def _by_step(
    notes: deque[PauseNote], delivered_s: Floats, done_s: Floats
) -> dict[int, list[Interval]]:
    """Return the pauses in each step, and keep in ``notes`` those that begin after all steps."""
    by_step: dict[int, list[Interval]] = {}
    for _ in range(len(notes)):
        note = notes.popleft()
        if note.begin_s >= done_s[-1]:
            notes.append(note)
            continue
        step = int(np.searchsorted(delivered_s, note.begin_s, side="right")) - 1
        if step >= 0 and note.begin_s < done_s[step]:
            pause = note.pause_within(float(delivered_s[step]), float(done_s[step]))
            if pause is not None and pause.end_s > pause.begin_s:
                by_step.setdefault(step, []).append(pause)
    return by_step


def _main_kind(pauses: Sequence[Interval], covered_s: float) -> PauseKind:
    """Return the kind that stands for all ``pauses`` of a step: of those that last half of the time
    the one with the best evidence, or else the longest."""

    def significance(pause: Interval) -> tuple[int, float]:
        length_s = pause.end_s - pause.begin_s
        return _RANK.get(pause.kind.evidence, 0) if length_s >= covered_s / 2 else -1, length_s

    return max(pauses, key=significance).kind


def _covered_s(intervals: Sequence[Interval]) -> float:
    """Return the seconds that ``intervals`` cover together; they may overlap."""
    covered_s, until_s = 0.0, float("-inf")
    for each in sorted(intervals, key=lambda each: each.begin_s):
        covered_s += max(0.0, each.end_s - max(each.begin_s, until_s))
        until_s = max(until_s, each.end_s)
    return covered_s
