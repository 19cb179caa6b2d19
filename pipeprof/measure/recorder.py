"""Main's notebook of a run: one row per delivered batch, bounded however long the run is.

A pass notes little of each batch, and fills in the rest every `FLUSH_EVERY` batches, when the code
and the data for it are at hand: in between, a training loop has driven both out of the caches.
Rows are kept until there are `WINDOW` to spare; then the oldest are handed to ``fold``, which adds
them to running figures, and forgotten here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import fields
from math import nan
from typing import Any, Protocol
from weakref import WeakSet

import numpy as np
import numpy.typing as npt

from pipeprof.measure.clock import Clock, SystemClock
from pipeprof.measure.ring import FIELDS
from pipeprof.model import BatchLog, Epoch

FLUSH_EVERY = 256
WINDOW = 8192
"""The fewest rows that are kept, once there were so many; at most twice as many are, 5 MB."""
KEPT_EPOCHS = 200

Floats = npt.NDArray[np.float64]
Arrays = Mapping[str, Floats]
"""Columns of a `BatchLog` by name; NaN is unknown."""
Fold = Callable[[Arrays], None]

_MAIN = ("index", "nth", "asked_s", "delivered_s", "done_s", "epoch")
WAY = ("worker", "received_s", "arrived_s", "pinned_s", "sampler_s")
"""What main sees of a batch's way to it."""
SEEN = (*WAY, *FIELDS)
"""What a `Source` fills in."""
_COLUMNS = (*_MAIN, *SEEN)
_SAMPLES = _COLUMNS.index("samples")
_WHOLE = ("index", "epoch", "nth", "epoch_batches", "worker", "samples")


class Source(Protocol):
    """Knows where the batches of a pass came from."""

    def columns(self, keys: list[Any]) -> tuple[Floats, int]:
        """Of the batches with these ``keys``, in the order of their delivery: [keys, `SEEN`], and
        how many records of workers were lost. A key is ``None`` when it could not be had."""
        ...


class Recorder:
    """The rows of all passes over a loader."""

    def __init__(self, clock: Clock | None = None, fold: Fold | None = None) -> None:
        self.now: Callable[[], float] = (clock or SystemClock()).now
        self.count = 0
        """Batches delivered."""
        self.lost_records = 0
        """Of the rows that are flushed."""
        self.epochs: deque[Epoch] = deque(maxlen=KEPT_EPOCHS)
        """Those that ended."""
        self.epoch_count = 0
        """Those that began."""
        self.first_batch_s: float | None = None
        """In the first epoch: from asking for the iterator to the first batch."""
        self.last_s = 0.0
        """The end of the last step that is known."""
        self._began_s = 0.0
        self._fold = fold
        self._passes: WeakSet[Pass] = WeakSet()
        self._tables: list[Floats] = []
        """[rows, `_COLUMNS`]."""
        self._rows = 0
        self._device: dict[int, tuple[float, float]] = {}
        self._copies: dict[int, tuple[float, int]] = {}

    def begin(self) -> Pass:
        """The iterator is asked for."""
        if not self.epoch_count:
            self._began_s = self.now()
        self.epoch_count += 1
        begun = Pass(self, self.epoch_count - 1)
        self._passes.add(begun)
        return begun

    @property
    def wall_s(self) -> float:
        """From the first pass's begin to the end of the last step."""
        return self.last_s - self._began_s if self.last_s else 0.0

    def add(self, table: Floats, lost: int) -> None:
        """Rows of batches whose step has ended: [rows, `_COLUMNS`]."""
        self.lost_records += lost
        self.last_s = max(self.last_s, float(table[-1, _MAIN.index("done_s")]))
        self._tables.append(table)
        self._rows += len(table)
        if self._rows >= 2 * WINDOW:
            whole = np.concatenate(self._tables)
            self._tables, self._rows = [whole[WINDOW:].copy()], len(whole) - WINDOW
            self._hand_over(self._arrays(whole, WINDOW))

    def note_device(self, index: int, wait_s: float, busy_s: float) -> None:
        """How long the accelerator had nothing to do before batch ``index``, and was busy after."""
        self._device[index] = wait_s, busy_s

    def note_copy(self, index: int, seconds: float, size: int) -> None:
        """Of a batch that was copied to a device."""
        before_s, before = self._copies.get(index, (0.0, 0))
        self._copies[index] = before_s + seconds, before + size

    def log(self) -> BatchLog:
        """The rows that are kept, as columns; a column that nothing is known of is empty."""
        for running in list(self._passes):
            running.flush()
        if not self._rows:
            return BatchLog()
        arrays = self._arrays(np.concatenate(self._tables), self._rows)
        columns: dict[str, Any] = {
            field.name: _column(field.name, arrays[field.name]) for field in fields(BatchLog)
        }
        return BatchLog(**columns)

    def _hand_over(self, arrays: Arrays) -> None:
        if self._fold is not None:
            self._fold(arrays)
        newest = int(arrays["index"].max())
        for notes in (self._device, self._copies):
            for index in [index for index in notes if index <= newest]:
                del notes[index]

    def _arrays(self, table: Floats, count: int) -> Arrays:
        """The oldest ``count`` rows of ``table``."""
        columns = np.ascontiguousarray(table.T)
        batches = _epoch_batches(columns[_MAIN.index("epoch")], columns[_MAIN.index("nth")])
        arrays = dict(zip(_COLUMNS, columns[:, :count], strict=True))
        arrays["epoch_batches"] = batches[:count]
        arrays["device_wait_s"], arrays["device_busy_s"] = _noted(self._device, arrays["index"])
        arrays["h2d_s"], arrays["h2d_bytes"] = _noted(self._copies, arrays["index"])
        return arrays


class Pass:
    """One iteration over a loader: told when a batch is asked for, delivered, and done with."""

    __slots__ = ("__weakref__", "_asked_s", "_began_s", "_epoch", "_first_s", "_iterator_s",
                 "_keys", "_left", "_open", "_recorder", "_rows", "index", "nth",
                 "source")  # fmt: skip

    def __init__(self, recorder: Recorder, epoch: int) -> None:
        self._recorder = recorder
        self._epoch = epoch
        self._began_s = recorder.now()
        self._iterator_s = self._first_s = self._asked_s = nan
        self.source: Source | None = None
        """To be set before the first batch."""
        self.nth = 0
        """Batches delivered in this pass."""
        self.index = -1
        """Of the batch last delivered, over all passes."""
        self._open: tuple[int, int, float, float] | None = None
        """Of the batch whose step is under way: index, nth, asked, delivered."""
        self._rows: list[tuple[int, int, float, float, float]] = []
        self._keys: list[Any] = []
        """Of ``_rows``, and then of the batch under way."""
        self._left = False

    def started(self) -> None:
        """The iterator is there."""
        self._iterator_s = self._recorder.now() - self._began_s

    def ask(self) -> None:
        """The next batch is asked for; the step on the last one has ended."""
        now = self._recorder.now()
        if self._open is not None:
            rows = self._rows
            rows.append((*self._open, now))
            self._open = None
            if len(rows) >= FLUSH_EVERY:
                self.flush()
        self._asked_s = now

    def deliver(self, key: Any) -> None:
        """The batch asked for is handed to the training loop; ``key`` tells it to the source."""
        recorder = self._recorder
        now, nth, index = recorder.now(), self.nth, recorder.count
        self._open = index, nth, self._asked_s, now
        self._keys.append(key)
        self.index, recorder.count, self.nth = index, index + 1, nth + 1
        if not nth:
            self._first_s = now - self._began_s
            if recorder.first_batch_s is None:
                recorder.first_batch_s = self._first_s

    def flush(self) -> None:
        """Give the recorder the rows of the batches that are done with."""
        count = len(self._rows)
        if not count:
            return
        table = np.full((count, len(_COLUMNS)), nan)
        table[:, : len(_MAIN) - 1] = self._rows
        table[:, len(_MAIN) - 1] = self._epoch
        table[:, _COLUMNS.index("worker")] = -2
        lost, seen = count, len(_MAIN)
        # what cannot be told must not end the training
        with suppress(Exception):
            if self.source is not None:
                table[:, seen:], lost = self.source.columns(self._keys[:count])
        unknown = np.isnan(table[:, _SAMPLES])
        if unknown.any():
            table[unknown, _SAMPLES] = 1 if unknown.all() else np.nanmedian(table[:, _SAMPLES])
        self._rows.clear()
        del self._keys[:count]
        self._recorder.add(table, lost)

    def leave(self, exhausted: bool = False) -> None:
        """The loop has ended, or was left; only the first call counts."""
        if self._left:
            return
        self._left = True
        now, asked_s = self._recorder.now(), self._asked_s
        self.ask()
        self.flush()
        self._recorder.epochs.append(
            Epoch(
                index=self._epoch,
                began_s=self._began_s,
                batches=self.nth,
                wall_s=now - self._began_s,
                iterator_s=_known(self._iterator_s),
                first_batch_s=_known(self._first_s),
                closing_s=_known(now - asked_s) if exhausted else None,
            )
        )


def _noted(notes: Mapping[int, tuple[float, float]], index: Floats) -> Floats:
    """[2, index]: what is known of each."""
    noted = np.full((2, len(index)), nan)
    if notes:
        for place, number in enumerate(index.astype(int).tolist()):
            if number in notes:
                noted[:, place] = notes[number]
    return noted


def _epoch_batches(epoch: Floats, nth: Floats) -> Floats:
    """Of each batch's epoch, by now."""
    known, which = np.unique(epoch, return_inverse=True)
    length = np.zeros(len(known))
    np.maximum.at(length, which, nth + 1)
    return length[which]


def _known(value: float) -> float | None:
    return None if value != value else value


def _column(name: str, values: Floats) -> tuple[float | int | None, ...]:
    if np.isnan(values).all():
        return ()
    if name in _WHOLE:
        return tuple(int(value) for value in values)
    return tuple(_known(value) for value in values.tolist())
