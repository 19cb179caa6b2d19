"""Time one iteration over a loader in the training loop.

A pass notes two moments of each batch. The rest is filled in every `FLUSH_EVERY` batches, over as
many passes as these take. The training loop drives our code and data out of the caches, and so they
have to come back only once.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from itertools import compress
from math import inf, nan
from typing import TYPE_CHECKING, Any

import numpy as np

from pipeprof.log import suppress_and_log
from pipeprof.measure import pauses
from pipeprof.measure.rows import (
    LOOP_FIELDS,
    Floats,
    Source,
    as_array,
    batch_number,
    none_if_nan,
    recorded,
    unknown_rows,
)
from pipeprof.model import Epoch, PauseKind

if TYPE_CHECKING:
    from pipeprof.measure.recorder import Recorder

_log = logging.getLogger(__name__)

FLUSH_EVERY = 4096
"""At most so many batches of a pass wait to be filled in. That takes milliseconds however few they
are, as the training has driven the code out of the caches."""
FLUSH_RECORDED_EVERY = 1024
"""The same while batches are recorded in full. Each of them takes about 10 µs to fill in, and the
training loop waits for all of them."""


class Pass:
    """One iteration over a loader. Its owner calls it when a batch is asked for and delivered."""

    __slots__ = ("__weakref__", "_ended_s", "_epoch", "_first_s", "_flushed", "_iterator_s",
                 "_pause_notes", "_recorder", "_used_s", "asked_s", "begin_s", "may_fill_later",
                 "notes", "now", "source", "was_dropped")  # fmt: skip

    def __init__(self, recorder: Recorder, epoch: int) -> None:
        self._recorder, self.now = recorder, recorder.now
        self._epoch = epoch
        self.begin_s = self._used_s = self.now()
        """``_used_s`` is when an ended pass was last asked for a batch, or delivered one."""
        self._iterator_s = self._first_s = nan
        self.asked_s = nan
        """When the next batch was asked for. The owner sets it from `now`, or calls `ask`."""
        self.source: Source | None = None
        """Where the figures of batches come from. The owner sets it before the first batch."""
        self.may_fill_later = False
        """Whether `source` keeps its records after the pass has ended."""
        self.was_dropped = False
        """Whether another pass took its place."""
        self._flushed = 0
        """Batches delivered that are no longer in `notes`."""
        self.notes: list[tuple[float, float, Any]] = []
        """When each batch was asked for and delivered, and its key. Keeping a tuple costs less
        than writing its items anywhere. The owner calls `deliver`, or adds to it itself and calls
        `flush_if_full` now and then."""
        self._ended_s = inf
        self._pause_notes: deque[pauses.PauseNote] = deque(maxlen=pauses.MOST_NOTES)

    @property
    def nth(self) -> int:
        """The number of batches delivered in this pass."""
        return self._flushed + len(self.notes)

    @property
    def number(self) -> int:
        """The `batch_number` of the next batch to be delivered."""
        return batch_number(self._epoch, self.nth)

    @property
    def pending(self) -> int:
        """The number of delivered batches whose rows the recorder does not have yet."""
        return len(self.notes)

    def started(self) -> None:
        """Note that the iterator is there."""
        self._iterator_s = self.now() - self.begin_s

    def ask(self) -> None:
        """Note that the next batch is asked for, and so the step on the last one has ended."""
        self.asked_s = self.now()

    def deliver(self, key: Any = None) -> None:
        """Note that the batch asked for is delivered; ``key`` identifies it to the source."""
        self.notes.append((self.asked_s, self.now(), key))
        self.flush_if_full(0)

    def flush_if_full(self, more: int, most: int = FLUSH_EVERY) -> None:
        """Call `flush` if with ``more`` batches more than ``most`` would wait for it."""
        if len(self.notes) + more > most:
            self.flush()

    def asked_earlier(self, asked_s: float) -> None:
        """Correct when the batch that was delivered last was asked for."""
        if self.notes:
            self.notes[-1] = (asked_s, *self.notes[-1][1:])
            self.asked_s = asked_s

    def add_note(self, note: pauses.PauseNote) -> None:
        """Keep a note of what may be a pause of the current step."""
        if self._ended_s == inf:
            self._pause_notes.append(note)

    def pause_within(self, begin_s: float, end_s: float) -> pauses.Interval | None:
        """Return this pass as a pause of another pass's step, if it was over before that step. An
        iterator may be kept: a pass is also over when nothing was asked of it any more."""
        over_s = self._ended_s if self._ended_s <= end_s else self._last_s()
        kind = PauseKind(self._recorder.name, "loader")
        return pauses.Interval(self.begin_s, over_s, kind) if over_s <= end_s else None

    @property
    def fill_ended(self) -> Callable[[], None]:
        """A function that gives the recorder the rows of all passes that have ended."""
        return self._recorder.fill_ended

    def flush(self) -> None:
        """Give the recorder the rows of the batches whose steps have ended."""
        if self.notes:
            self._note_first()
            self._recorder.fill_ended()  # rows come in the order of their batches
            if self._ended_s == inf:
                self._fill()

    def finish(self) -> None:
        """Give the recorder the rows of all remaining batches, after the pass has ended."""
        if self.notes:
            self._fill(self._ended_s)
        # another pass may have a note of this one, which must not keep the source alive
        self.source = None
        self._pause_notes.clear()

    def _note_first(self) -> None:
        """Note when the first batch came."""
        if self.notes and not self._flushed:
            self._first_s = self.notes[0][1] - self.begin_s
            self._recorder.note_first_batch(self._epoch, self._first_s)

    def _fill(self, ended_s: float | None = None) -> None:
        asked_s, delivered_s, keys = zip(*self.notes, strict=True)
        # a step ends when the next batch is asked for
        asked_again = self.asked_s > delivered_s[-1]
        last = [self.asked_s] if asked_again else [] if ended_s is None else [ended_s]
        done_s = as_array([*asked_s[1:], *last])
        count = len(done_s)
        moments = np.stack([as_array(asked_s[:count]), as_array(delivered_s[:count])])
        for first in range(0, count, FLUSH_EVERY):
            part = slice(first, min(first + FLUSH_EVERY, count))
            self._add_rows(list(keys[part]), moments[:, part], done_s[part])

    def _add_rows(self, keys: list[Any], moments: Floats, done_s: Floats) -> None:
        count, first = len(done_s), self._flushed
        paused, others_s = np.full((count, 2), nan), np.full(count, nan)
        # an error of ours must not end the training
        with suppress_and_log(_log, f"the pauses of {count} batches are not known"):
            paused = self._recorder.pauses.of_steps(self._pause_notes, moments[1], done_s)
        with suppress_and_log(_log, f"what {count} steps waited for is not known"):
            others_s = self._recorder.waits_for_others(moments[1], done_s, paused[:, 0])
        mask = recorded(keys)
        observed, lost = self._observed(list(compress(keys, mask)), moments[:, mask].T)
        loop = np.empty((len(LOOP_FIELDS), count))
        nth = np.arange(first, first + count)
        columns = (nan, nth, self._epoch, *moments, done_s, *paused.T, others_s)
        for place, column in enumerate(columns):
            loop[place] = column
        self._flushed += count
        del self.notes[:count]
        self._recorder.add(loop, mask, observed, lost)

    def _observed(self, keys: list[Any], moments: Floats) -> tuple[Floats, int]:
        """Return what `source` knows of recorded batches; nothing where it fails."""
        if not keys:
            return unknown_rows(0), 0
        with suppress_and_log(_log, f"the stages of {len(keys)} batches are not known"):
            if self.source is not None:
                return self.source.columns(keys, moments)
        return unknown_rows(len(keys)), len(keys)

    def _last_s(self) -> float:
        """Return when a batch was last asked for or delivered."""
        if self._ended_s < inf or not self.notes:
            return float(np.fmax(self._used_s, self.asked_s))
        return max(self.notes[-1][1], self.asked_s)

    def drop(self) -> None:
        """End the pass as if it had never begun, before it delivered a batch."""
        self.was_dropped, self._ended_s = True, self.begin_s
        self._recorder.drop_pass(self)

    def leave(self, exhausted: bool = False) -> None:
        """End the pass: the loader is ``exhausted``, or the loop was left before. Only the first
        call counts."""
        if self._ended_s < inf:
            return
        now, asked_s = self.now(), self.asked_s
        self._note_first()
        self._used_s, self._ended_s = self._last_s(), now
        self._recorder.end_pass(self)
        self._recorder.epochs.append(
            Epoch(
                index=self._epoch,
                began_s=self.begin_s,
                batches=self.nth,
                wall_s=now - self.begin_s,
                iterator_s=none_if_nan(self._iterator_s),
                first_batch_s=none_if_nan(self._first_s),
                closing_s=none_if_nan(now - asked_s) if exhausted else None,
            )
        )
