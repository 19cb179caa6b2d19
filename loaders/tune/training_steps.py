"""Distinguishes the training steps of a tuned loader from pauses, such as validation.

A pause says nothing of a setting. It would make a stretch look slow, and the accelerator fed, as
workers fetch ahead meanwhile.
"""

from __future__ import annotations

import logging
from collections import deque
from statistics import median

from pipeprof.log import suppress_and_log
from pipeprof.measure.pauses import MOST_NOTES, PauseNote

_log = logging.getLogger(__name__)

_REMEMBERED = 300
"""Last steps that a step is compared with."""
_LEAST_STEPS = 10
"""Before so many steps, length alone makes none a pause: a compiler may be at work in them."""
_KNOWN_MEDIANS = 2.0
"""Shortest step with a known pause in it, in median steps. What takes less, such as logging, hardly
changes a stretch."""
_LEAST_S, _LEAST_MEDIANS = 0.1, 10.0
"""Shortest step that counts as a pause by its length alone, in seconds and in median steps. A
profile asks for more (`analyze.profile.pauses`). To leave out an ordinary step costs a stretch
nothing, as the steps of both settings are left out alike."""
_MOST_SHARE = 1 / 30
"""Largest share of the steps that may be so long; otherwise they are part of training."""


class TrainingSteps:
    """The steps of a training loop, and what is announced of pauses in its thread."""

    def __init__(self) -> None:
        self._lengths_s: deque[float] = deque(maxlen=_REMEMBERED)
        self._notes: deque[PauseNote] = deque(maxlen=MOST_NOTES)
        self._begin_s: float | None = None
        self.by_length: tuple[float, float] | None = None
        """When the pause of the last step began and ended, if only its length shows it."""

    def add_note(self, note: PauseNote) -> None:
        """Note what may be a pause: see `pipeprof.measure.pauses`."""
        self._notes.append(note)

    def begin(self, delivered_s: float | None) -> None:
        """A step begins as a batch is delivered; ``None``: an epoch begins, without a step."""
        self._begin_s = delivered_s

    def paused(self, asked_s: float) -> bool:
        """End the present step, as the next batch is asked for. Return whether it has a pause."""
        begin_s, self.by_length = self._begin_s, None
        if begin_s is None:
            self._notes.clear()
            return False
        step_s, known = asked_s - begin_s, False
        while self._notes and self._notes[0].begin_s < asked_s:
            note = self._notes.popleft()
            with suppress_and_log(_log, "a pause counts as a part of its step"):
                known |= note.begin_s >= begin_s and bool(note.pause_within(begin_s, asked_s))
        paused = (known or step_s >= _LEAST_S) and self._is_long(step_s, known)
        if paused and not known:
            self.by_length = begin_s + median(self._lengths_s), asked_s
        self._lengths_s.append(step_s)
        return paused

    def _is_long(self, step_s: float, known: bool) -> bool:
        steps = len(self._lengths_s)
        if steps < _LEAST_STEPS:
            return known
        medians = _KNOWN_MEDIANS if known else _LEAST_MEDIANS
        if step_s < medians * median(self._lengths_s):
            return False
        return known or sum(each >= step_s / 2 for each in self._lengths_s) <= _MOST_SHARE * steps
