"""Record a run in the main process: one row per delivered batch, in bounded memory.

Once there are twice `WINDOW` rows, all but the last `WINDOW` are handed to ``fold``, which adds
them to running figures, and are dropped here.
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
from pipeprof.measure.other_loaders import OtherWaits, WaitingLoader, join_loaders
from pipeprof.measure.rows import (
    COLUMNS,
    LOOP_FIELDS,
    WITHOUT_RECORD,
    Arrays,
    Floats,
    Mask,
    batch_numbers,
    epoch_batches,
    log_column,
    lookup,
)
from pipeprof.model import UNWATCHED, BatchLog, Epoch, OtherLoader

WINDOW = 8192
"""At least so many of the last rows are kept, and less than twice as many, which is 5 MB."""
KEPT_EPOCHS = 200
_MOST_UNFILLED = 8
"""So many ended passes may wait to be filled in: each keeps what its workers wrote."""

Fold = Callable[[Arrays], None]
_INDEX, _EPOCH, _NTH, _ASKED, _DELIVERED, _DONE, _WORKER, _SAMPLES = (
    COLUMNS.index(name)
    for name in ("index", "epoch", "nth", "asked_s", "delivered_s", "done_s", "worker", "samples")
)
_LOOP = slice(0, len(LOOP_FIELDS))
_SOURCE = slice(len(LOOP_FIELDS), len(COLUMNS))
_ALWAYS = [COLUMNS.index(name) for name in WITHOUT_RECORD]
_RECORDED = [name for name in COLUMNS if name not in WITHOUT_RECORD]


class Recorder:
    """Collects the rows of all passes over one loader."""

    def __init__(
        self, clock: Clock = SYSTEM_CLOCK, fold: Fold | None = None, name: str = "loader"
    ) -> None:
        self.name = name
        self.now: Callable[[], float] = clock.now
        self.pauses = pauses.PauseLog()
        self.lost_records = 0
        """Flushed rows whose worker's record was lost."""
        self.epochs: deque[Epoch] = deque(maxlen=KEPT_EPOCHS)
        """The last epochs that have ended."""
        self.epoch_count = 0
        """Epochs that have begun."""
        self.unwatched = 0
        """Flushed rows of batches of which only the delivery was timed."""
        self.on_rows: Callable[[Floats], None] | None = None
        """Called with each table of new rows: [rows, `COLUMNS`]."""
        self.first_batch_s: float | None = None
        """Seconds from the request for the first epoch's iterator to its first batch."""
        self._first_epoch = 0
        """The epoch of that batch."""
        self.last_s = 0.0
        """When the last flushed step ended."""
        self._began_s = 0.0
        self._fold = fold
        self._loaders: WeakSet[WaitingLoader] = WeakSet()
        """All that the loop iterates, this one included."""
        self._other_waits = OtherWaits()
        self._passes: WeakSet[Pass] = WeakSet()
        self._ended: deque[Pass] = deque()
        """Passes that ended and are not filled in yet, in the order of their ends."""
        self._table = np.empty((len(COLUMNS), 2 * WINDOW + FLUSH_EVERY))
        """The kept rows come first in it: [`COLUMNS`, rows]. Only `WITHOUT_RECORD` is written for
        batches that are only timed. Memory is used only as rows come, and is not returned and asked
        for again, which would fragment it over days."""
        self._rows = 0
        self._folded = 0
        """Rows that were handed to ``fold``."""
        self._usual_samples = 1.0
        """Mean samples of a batch when they were last counted."""
        self._device: dict[int, tuple[float, float]] = {}
        self._copies: dict[int, tuple[float, int]] = {}

    def begin(self) -> Pass:
        """Begin a pass, when the loop asks for an iterator."""
        if not self.epoch_count:
            self._began_s = self.now()
        pending = sum(ended.pending for ended in self._ended)
        if len(self._ended) >= _MOST_UNFILLED or pending > FLUSH_EVERY:
            self.fill_ended()
        self.epoch_count += 1
        begun = Pass(self, self.epoch_count - 1)
        self._passes.add(begun)
        self._loaders = join_loaders(self)
        pauses.announce(begun)
        pauses.listen(begun)
        return begun

    def drop_pass(self, dropped: Pass) -> None:
        """Forget the pass that began last."""
        self._passes.discard(dropped)
        self.epoch_count -= 1

    def waits(self) -> Floats:
        """Return when each of the last batches was asked for and delivered: [2, batches]."""
        kept = self._table[[_ASKED, _DELIVERED], : self._rows]
        pending = [note[:2] for each in list(self._passes) for note in list(each.notes)]
        waits = np.concatenate([kept, np.array(pending).reshape(-1, 2).T], axis=1)
        return waits[:, np.argsort(waits[0])]

    def receiving_s(self) -> float:
        """Return the mean seconds of a wait after the batch had come from its worker. This is work
        of the training process, and remains however fast the loader is."""
        columns = self._columns(0, self._rows)
        came_s = np.fmax(columns["received_s"], columns["pinned_s"])
        known = np.isfinite(came_s)
        work_s = (columns["delivered_s"] - np.fmax(came_s, columns["asked_s"]))[known]
        return max(0.0, float(work_s.mean())) if known.any() else 0.0

    def made_every_s(self) -> float:
        """Return the mean seconds in which its workers make a batch; NaN where that is unknown."""
        columns = self._columns(0, self._rows)
        made_s = columns["fetch_end_s"] - columns["fetch_start_s"]
        known = np.isfinite(made_s)
        workers = max(1, len(np.unique(columns["worker"][known])))
        return float(made_s[known].mean()) / workers if known.any() else nan

    def fill(self) -> None:
        """Fill in the rows of all batches so far."""
        self.fill_ended()
        for running in list(self._passes):
            running.flush()

    def waits_for_others(self, delivered_s: Floats, done_s: Floats, paused_s: Floats) -> Floats:
        """Return the seconds of each step in which the loop waited for other loaders. A pause, such
        as a validation, is none of them."""
        others = self._others()
        if not others:
            return np.full(len(done_s), nan)
        return self._other_waits.add(others, delivered_s, done_s, ~(paused_s > 0))

    def other_loaders(self) -> tuple[OtherLoader, ...]:
        """Return the other loaders from which steps took batches, longest awaited first."""
        return self._other_waits.loaders(self._others(), self._folded + self._rows)

    def _others(self) -> list[WaitingLoader]:
        """Return what this thread iterates besides, on the same clock."""
        return [each for each in self._loaders if each is not self and each.now == self.now]

    def note_pause(self, note: pauses.PauseNote) -> None:
        """Note a pause of the loop at all passes that have not ended."""
        for each in self._passes:
            each.add_note(note)

    def note_first_batch(self, epoch: int, seconds: float) -> None:
        """Note how long the first batch of an ``epoch`` took to come. Epochs may overlap."""
        if self.first_batch_s is None or epoch < self._first_epoch:
            self.first_batch_s, self._first_epoch = seconds, epoch

    def end_pass(self, ended: Pass) -> None:
        """Fill in a pass that ended, now or together with later ones."""
        self._ended.append(ended)
        if not ended.may_fill_later:
            self.fill_ended()

    def fill_ended(self) -> None:
        """Add the remaining rows of all passes that have ended."""
        while self._ended:
            self._ended.popleft().finish()

    @property
    def count(self) -> int:
        """The number of batches delivered."""
        return self._folded + self._rows + sum(running.pending for running in list(self._passes))

    @property
    def wall_s(self) -> float:
        """Seconds from the begin of the first pass to the end of the last step."""
        return self.last_s - self._began_s if self.last_s else 0.0

    def add(self, loop: Floats, recorded: Mask, observed: Floats, lost: int) -> None:
        """Add at most `FLUSH_EVERY` rows, of batches whose step has ended.

        ``loop`` is [`LOOP_FIELDS`, rows], without their index. ``observed`` is [recorded rows,
        `SOURCE_FIELDS`]. ``lost`` of them have no record of their worker.
        """
        begin, end = self._rows, self._rows + loop.shape[1]
        table = self._table[:, begin:end]
        table[_LOOP] = loop
        table[_INDEX] = np.arange(self._folded + begin, self._folded + end)
        table[_WORKER], table[_SAMPLES] = UNWATCHED, nan
        table[_SOURCE, recorded] = observed.T
        self._count_samples(table[_SAMPLES])
        self.unwatched += end - begin - len(observed)
        self.lost_records += lost
        self.last_s = max(self.last_s, float(loop[_DONE, -1]))
        self._rows = end
        if self.on_rows is not None:
            columns = self._columns(begin, end)
            self.on_rows(np.stack([columns[name] for name in COLUMNS], axis=1))
        if self._rows >= 2 * WINDOW:
            self._fold_all_but(WINDOW)

    def note_device(self, number: int, wait_s: float, busy_s: float) -> None:
        """Note how long the accelerator was idle before a batch, and busy after it. ``number`` is
        its `Pass.number`."""
        self._device[number] = wait_s, busy_s

    def note_copy(self, number: int, seconds: float, size: int) -> None:
        """Note a copy of ``size`` bytes to a device, in the step on the batch ``number``."""
        total_s, total = self._copies.get(number, (0.0, 0))
        self._copies[number] = total_s + seconds, total + size

    def log(self) -> BatchLog:
        """Return the kept rows as columns; a column that is unknown throughout is empty."""
        for each in (self, *self._others()):
            each.fill()
        if not self._rows:
            return BatchLog()
        arrays = self._arrays(self._rows)
        columns: dict[str, Any] = {
            field.name: log_column(field.name, arrays[field.name]) for field in fields(BatchLog)
        }
        return BatchLog(**columns)

    def _count_samples(self, samples: Floats) -> None:
        """Set the ``samples`` of batches that were not counted to those of the others."""
        unknown = np.isnan(samples)
        if not unknown.all():
            self._usual_samples = float(np.rint(np.nanmean(samples)))
        samples[unknown] = self._usual_samples

    def _fold_all_but(self, last: int) -> None:
        """Hand over all rows but the ``last``, at most half of them, and drop them with their
        notes."""
        count = self._rows - last
        arrays = self._arrays(count)
        if self._fold is not None:
            self._fold(arrays)
        for notes in (self._device, self._copies):
            for number in batch_numbers(arrays) if notes else ():
                notes.pop(number, None)
        kept = self._table[:, count : self._rows]
        if (kept[_WORKER] == UNWATCHED).all():
            self._table[_ALWAYS, :last] = kept[_ALWAYS]
        else:
            self._table[:, :last] = kept
        self._rows, self._folded = last, self._folded + count

    def _arrays(self, count: int) -> Arrays:
        """Return the oldest ``count`` rows as columns. They are valid until rows are added."""
        arrays = self._columns(0, count)
        receiving_s = sum(each.receiving_s() for each in self._others())
        arrays["others_received_s"] = np.minimum(arrays["others_s"], receiving_s)
        kept = self._table[:, : self._rows]
        arrays["epoch_batches"] = epoch_batches(kept[_EPOCH], kept[_NTH])[:count]
        arrays["rested"] = np.full(count, nan)  # it can be decided from all steps only
        arrays["device_wait_s"], arrays["device_busy_s"] = lookup(self._device, arrays)
        arrays["h2d_s"], arrays["h2d_bytes"] = lookup(self._copies, arrays)
        return arrays

    def _columns(self, begin: int, end: int) -> dict[str, Floats]:
        """Return the rows from ``begin`` to ``end`` as `COLUMNS`."""
        columns: dict[str, Floats] = dict(zip(COLUMNS, self._table[:, begin:end], strict=True))
        only_timed = columns["worker"] == UNWATCHED
        if only_timed.all():
            columns.update(dict.fromkeys(_RECORDED, np.full(end - begin, nan)))
        elif only_timed.any():
            columns.update({name: np.where(only_timed, nan, columns[name]) for name in _RECORDED})
        return columns
