"""Main's notebook of a run: one row per delivered batch, bounded however long the run is.

Rows are kept until there are `WINDOW` to spare; then the oldest are handed to ``fold``, which adds
them to running figures, and forgotten here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import fields
from math import nan
from typing import Any
from weakref import WeakSet

import numpy as np

from pipeprof.measure import pauses
from pipeprof.measure.clock import SYSTEM_CLOCK, Clock
from pipeprof.measure.loader_pass import FLUSH_EVERY, Pass
from pipeprof.measure.rows import (
    COLUMNS,
    Arrays,
    Floats,
    batch_numbers,
    epoch_batches,
    log_column,
    noted,
)
from pipeprof.model import UNWATCHED, BatchLog, Epoch

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
        self, clock: Clock = SYSTEM_CLOCK, fold: Fold | None = None, name: str = "loader"
    ) -> None:
        self.name = name
        self.now: Callable[[], float] = clock.now
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
            self._forget(self._arrays(whole, WINDOW))

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

    def _forget(self, arrays: Arrays) -> None:
        """Hand over the oldest rows, and drop what was noted of them."""
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
