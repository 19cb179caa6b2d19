"""Main's notebook of a run: one row per delivered batch, bounded however long the run is.

A pass notes two moments of each batch, and fills in the rest every `FLUSH_EVERY` batches, however
many passes these are of: then the code and the data for it are at hand, which a training loop
drives out of the caches in between.
Rows are kept until there are `WINDOW` to spare; then the oldest are handed to ``fold``, which adds
them to running figures, and forgotten here.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from dataclasses import fields
from math import inf, nan
from typing import Any
from weakref import WeakSet

import numpy as np

from pipeprof.log import suppress_and_log
from pipeprof.measure import pauses
from pipeprof.measure.clock import Clock, SystemClock
from pipeprof.measure.rows import (
    COLUMNS,
    MAIN,
    Arrays,
    Floats,
    Source,
    as_array,
    batch_number,
    batch_numbers,
    epoch_batches,
    known,
    log_column,
    noted,
    nothing_known,
)  # fmt: skip
from pipeprof.model import UNWATCHED, BatchLog, Epoch, PauseKind

_log = logging.getLogger(__name__)

FLUSH_EVERY = 1024
WINDOW = 8192
"""The fewest rows that are kept, once there were so many; at most twice as many are, 5 MB."""
KEPT_EPOCHS = 200
_MOST_LEFT = 8
"""Passes that ended and are yet to be filled in: each keeps what its workers wrote."""

Fold = Callable[[Arrays], None]
_INDEX, _DONE, _WORKER, _SAMPLES = (
    COLUMNS.index(name) for name in ("index", "done_s", "worker", "samples")
)


class Recorder:
    """The rows of all passes over a loader."""

    def __init__(
        self, clock: Clock | None = None, fold: Fold | None = None, name: str = "loader"
    ) -> None:
        self.name = name
        self.now: Callable[[], float] = (clock or SystemClock()).now
        self.pauses = pauses.PauseLog()
        self.lost_records = 0
        """Of the rows that are flushed."""
        self.epochs: deque[Epoch] = deque(maxlen=KEPT_EPOCHS)
        """Those that ended."""
        self.epoch_count = 0
        """Those that began."""
        self.unwatched = 0
        """Batches that were only clocked, of the rows that are flushed."""
        self.heard: Callable[[Floats], None] | None = None
        """Told of rows as they come: [rows, `COLUMNS`]."""
        self.first_batch_s: float | None = None
        """In the first epoch: from asking for the iterator to the first batch."""
        self.last_s = 0.0
        """The end of the last step that is known."""
        self._began_s = 0.0
        self._fold = fold
        self._passes: WeakSet[Pass] = WeakSet()
        self._left: deque[Pass] = deque()
        """Those that ended and are yet to be filled in, in the order of their ends."""
        self._tables: list[Floats] = []
        """[rows, `COLUMNS`]."""
        self._rows = 0
        self._folded = 0
        """Rows that are no longer kept."""
        self._usual = 1.0
        """Samples of a batch, where they were counted last."""
        self._device: dict[int, tuple[float, float]] = {}
        self._copies: dict[int, tuple[float, int]] = {}

    def begin(self) -> Pass:
        """The iterator is asked for."""
        if not self.epoch_count:
            self._began_s = self.now()
        if len(self._left) >= _MOST_LEFT or sum(left.pending for left in self._left) > FLUSH_EVERY:
            self.settle()
        self.epoch_count += 1
        begun = Pass(self, self.epoch_count - 1)
        self._passes.add(begun)
        pauses.tell(begun)
        pauses.begin(begun)
        return begun

    def leave(self, ended: Pass) -> None:
        """It is filled in now, or with others that end after it."""
        self._left.append(ended)
        if not ended.may_wait:
            self.settle()

    def settle(self) -> None:
        """Fill in the passes that have ended."""
        while self._left:
            self._left.popleft().settle()

    @property
    def count(self) -> int:
        """Batches delivered."""
        return self._folded + self._rows + sum(running.pending for running in list(self._passes))

    @property
    def wall_s(self) -> float:
        """From the first pass's begin to the end of the last step."""
        return self.last_s - self._began_s if self.last_s else 0.0

    def add(self, table: Floats, lost: int) -> None:
        """Rows of batches whose step has ended: [rows, `COLUMNS`], but for their index."""
        first = self._folded + self._rows
        table[:, _INDEX] = np.arange(first, first + len(table))
        self._count_samples(table)
        self.lost_records += lost
        self.unwatched += int((table[:, _WORKER] == UNWATCHED).sum())
        self.last_s = max(self.last_s, float(table[-1, _DONE]))
        self._tables.append(table)
        self._rows += len(table)
        if self.heard is not None:
            self.heard(table)
        if self._rows >= 2 * WINDOW:
            whole = np.concatenate(self._tables)
            self._tables, self._rows = [whole[WINDOW:].copy()], len(whole) - WINDOW
            self._folded += WINDOW
            self._hand_over(self._arrays(whole, WINDOW))

    def note_device(self, number: int, wait_s: float, busy_s: float) -> None:
        """How long the accelerator had nothing to do before the batch of that `Pass.number`, and
        was busy after."""
        self._device[number] = wait_s, busy_s

    def note_copy(self, number: int, seconds: float, size: int) -> None:
        """Of a batch that was copied to a device."""
        before_s, before = self._copies.get(number, (0.0, 0))
        self._copies[number] = before_s + seconds, before + size

    def log(self) -> BatchLog:
        """The rows that are kept, as columns; a column that nothing is known of is empty."""
        self.settle()
        for running in list(self._passes):
            running.flush()
        if not self._rows:
            return BatchLog()
        arrays = self._arrays(np.concatenate(self._tables), self._rows)
        columns: dict[str, Any] = {
            field.name: log_column(field.name, arrays[field.name]) for field in fields(BatchLog)
        }
        return BatchLog(**columns)

    def _count_samples(self, table: Floats) -> None:
        """Where they were not counted, a batch has as many as others."""
        samples = table[:, _SAMPLES]
        unknown = np.isnan(samples)
        if not unknown.all():
            self._usual = float(np.rint(np.nanmean(samples)))
        samples[unknown] = self._usual

    def _hand_over(self, arrays: Arrays) -> None:
        if self._fold is not None:
            self._fold(arrays)
        for notes in (self._device, self._copies):
            for number in batch_numbers(arrays) if notes else ():
                notes.pop(number, None)

    def _arrays(self, table: Floats, count: int) -> Arrays:
        """The oldest ``count`` rows of ``table``."""
        batches = epoch_batches(table[:, COLUMNS.index("epoch")], table[:, COLUMNS.index("nth")])
        columns = np.ascontiguousarray(table[:count].T)
        arrays: dict[str, Floats] = dict(zip(COLUMNS, columns, strict=True))
        arrays["epoch_batches"] = batches[:count]
        arrays["rested"] = np.full(count, nan)  # which, only all steps tell
        arrays["device_wait_s"], arrays["device_busy_s"] = noted(self._device, arrays)
        arrays["h2d_s"], arrays["h2d_bytes"] = noted(self._copies, arrays)
        return arrays


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
        """When each batch was asked for and delivered, and its key: of those not yet flushed. One
        tuple a batch: to keep it costs less than to write what is in it anywhere."""
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
            self._note_first(notes[0][1])

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

    def _note_first(self, delivered_s: float) -> None:
        recorder = self._recorder
        self._first_s = delivered_s - self.begin_s
        if recorder.first_batch_s is None:
            recorder.first_batch_s = self._first_s

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
