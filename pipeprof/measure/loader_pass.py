"""One iteration over a loader, as the training loop sees it.

A pass notes two moments of each batch, and fills in the rest every `FLUSH_EVERY` batches, however
many passes these are of: then the code and the data for it are at hand, which a training loop
drives out of the caches in between.
"""

from __future__ import annotations

import logging
from collections import deque
from math import inf, nan
from typing import TYPE_CHECKING, Any

import numpy as np

from pipeprof.log import suppress_and_log
from pipeprof.measure import pauses
from pipeprof.measure.rows import (
    MAIN,
    Floats,
    Source,
    as_array,
    batch_number,
    known,
    nothing_known,
)
from pipeprof.model import Epoch, PauseKind

if TYPE_CHECKING:
    from pipeprof.measure.recorder import Recorder

_log = logging.getLogger(__name__)

FLUSH_EVERY = 1024
"""Batches of a pass that wait to be filled in, at most."""


class Pass:
    """One iteration over a loader: told when a batch is asked for, delivered, and done with."""

    __slots__ = ("__weakref__", "_before", "_epoch", "_first_s", "_heard", "_iterator_s", "_left_s",
                 "_notes", "_recorder", "_used_s", "asked_s", "begin_s", "may_wait",
                 "now", "source")  # fmt: skip

    def __init__(self, recorder: Recorder, epoch: int) -> None:
        self._recorder, self.now = recorder, recorder.now
        self._epoch = epoch
        self.begin_s = self._used_s = self.now()
        """``_used_s``: of a pass that was left, when it last did anything before."""
        self._iterator_s = self._first_s = nan
        self.asked_s = nan
        """When the batch that comes next was asked for: to be set from `now`, or by `ask`."""
        self.source: Source | None = None
        """Of the batches that are not flushed. To be set before the first one."""
        self.may_wait = False
        """Nobody writes over what it is filled in from, when it has ended."""
        self._before = 0
        """Batches delivered that are no longer in `_notes`."""
        self._notes: list[tuple[float, float, Any]] = []
        """When each batch was asked for and delivered, and its key: of those not yet flushed. To
        keep a tuple costs less than to write what is in it anywhere."""
        self._left_s = inf
        self._heard: deque[pauses.PauseNote] = deque(maxlen=pauses.MOST_NOTES)

    @property
    def nth(self) -> int:
        """Batches delivered in this pass."""
        return self._before + len(self._notes)

    @property
    def number(self) -> int:
        """Tells the next batch to be delivered from all others of the recorder."""
        return batch_number(self._epoch, self.nth)

    @property
    def pending(self) -> int:
        """Batches that the recorder has no row of."""
        return len(self._notes)

    def started(self) -> None:
        """The iterator is there."""
        self._iterator_s = self.now() - self.begin_s

    def ask(self) -> None:
        """The next batch is asked for; the step on the last one has ended."""
        self.asked_s = self.now()

    def deliver(self, key: Any = None) -> None:
        """The batch asked for is handed to the training loop; ``key`` tells it to the source."""
        notes = self._notes
        notes.append((self.asked_s, self.now(), key))
        count = len(notes)
        if count > FLUSH_EVERY:
            self.flush()
        elif count == 1 and not self._before:
            self._first_s = notes[0][1] - self.begin_s
            if self._recorder.first_batch_s is None:
                self._recorder.first_batch_s = self._first_s

    def hear(self, note: pauses.PauseNote) -> None:
        """Of what may be a pause of the step under way."""
        if self._left_s == inf:
            self._heard.append(note)

    def within(self, begin_s: float, end_s: float) -> pauses.Interval | None:
        """This pass as a pause of another's step: where it was over by then, or at least nothing
        was asked of it any more, as its iterator may be kept."""
        over_s = self._left_s if self._left_s <= end_s else self._last_s()
        kind = PauseKind(self._recorder.name, "loader")
        return pauses.Interval(self.begin_s, over_s, kind) if over_s <= end_s else None

    def flush(self) -> None:
        """Give the recorder the rows of the batches that are done with."""
        if self._left_s == inf and self._notes:
            self._recorder.settle()  # rows come in the order of their batches
            self._fill()

    def settle(self) -> None:
        """All are done with, as the loop was left."""
        if self._notes:
            self._fill(self._left_s)
        # another pass may note this one, and must not keep what it used
        self.source = None
        self._heard.clear()

    def _fill(self, left_s: float | None = None) -> None:
        asked_s, delivered_s, keys = zip(*self._notes, strict=True)
        # a batch is done with when the next is asked for
        ended = self.asked_s > delivered_s[-1]
        last = [self.asked_s] if ended else [] if left_s is None else [left_s]
        done_s = as_array([*asked_s[1:], *last])
        if count := len(done_s):
            moments = np.column_stack([as_array(asked_s[:count]), as_array(delivered_s[:count])])
            self._add(list(keys[:count]), moments, done_s)

    def _add(self, keys: list[Any], moments: Floats, done_s: Floats) -> None:
        """The next rows."""
        count, first = len(done_s), self._before
        seen, lost = nothing_known(count), count
        paused = np.full((count, 2), nan)
        # what cannot be told must not end the training
        with suppress_and_log(_log, f"the stages of {count} batches are not known"):
            if self.source is not None:
                seen, lost = self.source.columns(keys, moments)
        with suppress_and_log(_log, f"the pauses of {count} batches are not known"):
            paused = self._recorder.pauses.of_steps(self._heard, moments[:, 1], done_s)
        main = np.empty((count, len(MAIN)))
        for place, column in enumerate(
            (nan, np.arange(first, first + count), self._epoch, *moments.T, done_s, *paused.T)
        ):
            main[:, place] = column
        self._before += count
        del self._notes[:count]
        self._recorder.add(np.concatenate([main, seen], axis=1), lost)

    def _last_s(self) -> float:
        """When a batch was last asked for or delivered."""
        if self._left_s < inf or not self._notes:
            return float(np.fmax(self._used_s, self.asked_s))
        return max(self._notes[-1][1], self.asked_s)

    def leave(self, exhausted: bool = False) -> None:
        """The loop has ended, or was left; only the first call counts."""
        if self._left_s < inf:
            return
        now, asked_s = self.now(), self.asked_s
        self._used_s, self._left_s = self._last_s(), now
        self._recorder.leave(self)
        self._recorder.epochs.append(
            Epoch(
                index=self._epoch,
                began_s=self.begin_s,
                batches=self.nth,
                wall_s=now - self.begin_s,
                iterator_s=known(self._iterator_s),
                first_batch_s=known(self._first_s),
                closing_s=known(now - asked_s) if exhausted else None,
            )
        )
