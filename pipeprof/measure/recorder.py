"""Main's notebook of a run: one row per delivered batch, bounded however long the run is.

Rows are kept until there are `WINDOW` to spare; then the oldest `WINDOW` are handed to ``fold``,
which adds them to running figures, and forgotten here.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import fields
from math import nan
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pipeprof.measure.clock import Clock, SystemClock
from pipeprof.measure.ring import FIELDS, UNSEEN
from pipeprof.model import BatchLog, Epoch

WINDOW = 8192
"""Rows that are folded at once, and the fewest that are kept after it: at most 10 MB in all."""
KEPT_EPOCHS = 200

Arrays = Mapping[str, npt.NDArray[np.float64]]
"""Columns of a `BatchLog` by name, and ``epoch_batches``, how many the batch's epoch had by then;
NaN is unknown."""
Fold = Callable[[Arrays], None]

_MAIN = ("index", "epoch", "nth", "worker", "samples", "asked_s", "delivered_s", "done_s",
         "received_s", "arrived_s", "pinned_s", "sampler_s")  # fmt: skip
_COLUMNS = (*_MAIN, *FIELDS)
_ROW_BYTES = 8 * len(_COLUMNS)
_EPOCH, _NTH = _MAIN.index("epoch"), _MAIN.index("nth")
_FULL = 2 * WINDOW * _ROW_BYTES
_PACK_MAIN = struct.Struct(f"<{len(_MAIN)}d").pack
_WHOLE = ("index", "epoch", "nth", "worker", "samples")


class Origin(NamedTuple):
    """Where a batch came from, as far as it could be seen; moments, NaN where unknown."""

    worker: int = -2
    """-1: made in the main process; -2: not known."""
    received_s: float = nan
    """All its bytes had come through the pipe."""
    arrived_s: float = nan
    """Unpickled in main."""
    pinned_s: float = nan
    """In page-locked memory."""
    sampler_s: float = 0.0
    """Time that main spent on picking indices while it was asked for this batch."""
    told: bytes | None = None
    """What the worker says, a record of `pipeprof.measure.ring`."""


class Recorder:
    """The rows of all passes over a loader."""

    def __init__(self, clock: Clock | None = None, fold: Fold | None = None) -> None:
        self.now: Callable[[], float] = (clock or SystemClock()).now
        self.count = 0
        """Batches delivered."""
        self.lost_records = 0
        self.epochs: deque[Epoch] = deque(maxlen=KEPT_EPOCHS)
        """Those that ended."""
        self.epoch_count = 0
        """Those that began."""
        self.first_batch_s: float | None = None
        """In the first epoch: from asking for the iterator to the first batch."""
        self._began_s = 0.0
        self._fold = fold
        self.rows = bytearray()
        """Written by passes."""
        self.last_s = 0.0
        """The end of the last step."""
        self._copies: dict[int, tuple[float, int]] = {}
        self._device: dict[int, tuple[float, float]] = {}

    def begin(self) -> Pass:
        """The iterator is asked for."""
        if not self.epoch_count:
            self._began_s = self.now()
        self.epoch_count += 1
        return Pass(self, self.epoch_count - 1)

    @property
    def wall_s(self) -> float:
        """From the first pass's begin to the end of the last step."""
        return self.last_s - self._began_s if self.last_s else 0.0

    def fold(self) -> None:
        """Hand over the oldest rows."""
        whole = self._arrays(bytes(self.rows), WINDOW)
        del self.rows[: WINDOW * _ROW_BYTES]
        if self._fold is not None:
            self._fold(whole)
        for index in whole["index"].astype(int).tolist():
            self._device.pop(index, None)
            self._copies.pop(index, None)

    def note_device(self, index: int, wait_s: float, busy_s: float) -> None:
        """How long the accelerator had nothing to do before batch ``index``, and was busy after."""
        self._device[index] = wait_s, busy_s

    def note_copy(self, index: int, seconds: float, size: int) -> None:
        """Of a batch that was copied to a device."""
        before_s, before = self._copies.get(index, (0.0, 0))
        self._copies[index] = before_s + seconds, before + size

    def log(self) -> BatchLog:
        """The rows that are kept, as columns; a column that nothing is known of is empty."""
        if not self.rows:
            return BatchLog()
        arrays = self._arrays(bytes(self.rows), len(self.rows) // _ROW_BYTES)
        columns: dict[str, Any] = {
            field.name: _column(field.name, arrays[field.name]) for field in fields(BatchLog)
        }
        return BatchLog(**columns)

    def _arrays(self, rows: bytes, count: int) -> Arrays:
        """The oldest ``count`` of ``rows``."""
        table = np.frombuffer(rows).reshape(-1, len(_COLUMNS)).T
        batches = _epoch_batches(table[_EPOCH], table[_NTH])
        arrays = dict(zip(_COLUMNS, table[:, :count], strict=True))
        arrays["epoch_batches"] = batches[:count]
        index, unknown = arrays["index"].astype(int).tolist(), (nan, nan)
        device = [self._device.get(number, unknown) for number in index]
        copies = [self._copies.get(number, unknown) for number in index]
        arrays["device_wait_s"], arrays["device_busy_s"] = np.array(device).T
        arrays["h2d_s"], arrays["h2d_bytes"] = np.array(copies).T
        return arrays


class Pass:
    """One iteration over a loader: told when a batch is asked for, delivered, and done with."""

    __slots__ = ("_asked_s", "_began_s", "_delivered_s", "_epoch", "_first_s", "_index",
                 "_iterator_s", "_left", "_nth", "_open", "_origin", "_recorder",
                 "_samples")  # fmt: skip

    def __init__(self, recorder: Recorder, epoch: int) -> None:
        self._recorder = recorder
        self._epoch = epoch
        self._began_s = recorder.now()
        self._iterator_s = self._first_s = self._asked_s = self._delivered_s = nan
        self._nth = 0
        """Of the next batch, within this pass."""
        self._index = -1
        self._samples = 0
        self._origin = Origin()
        self._open = self._left = False

    def started(self) -> None:
        """The iterator is there."""
        self._iterator_s = self._recorder.now() - self._began_s

    @property
    def nth(self) -> int:
        """Batches delivered in this pass."""
        return self._nth

    @property
    def index(self) -> int:
        """Of the batch last delivered, over all passes; -1 before the first."""
        return self._index

    def ask(self) -> None:
        """The next batch is asked for; the step on the last one has ended."""
        recorder = self._recorder
        now = recorder.now()
        if self._open:
            worker, received_s, arrived_s, pinned_s, sampler_s, told = self._origin
            recorder.rows += _PACK_MAIN(
                self._index, self._epoch, self._nth - 1, worker, self._samples, self._asked_s,
                self._delivered_s, now, received_s, arrived_s, pinned_s, sampler_s,
            ) + (told or UNSEEN)  # fmt: skip
            recorder.last_s = now
            self._open = False
            if len(recorder.rows) >= _FULL:
                recorder.fold()
        self._asked_s = now

    def deliver(self, samples: int, origin: Origin, expects_record: bool) -> None:
        """The batch asked for is handed to the training loop."""
        recorder = self._recorder
        self._delivered_s = now = recorder.now()
        if not self._nth:
            self._first_s = now - self._began_s
            if recorder.first_batch_s is None:
                recorder.first_batch_s = self._first_s
        if origin.told is None and expects_record:
            recorder.lost_records += 1
        self._index = recorder.count
        recorder.count += 1
        self._nth += 1
        self._samples = samples
        self._origin = origin
        self._open = True

    def leave(self, exhausted: bool = False) -> None:
        """The loop has ended, or was left; only the first call counts."""
        if self._left:
            return
        self._left = True
        now, asked_s = self._recorder.now(), self._asked_s
        if self._open:
            self.ask()
        self._recorder.epochs.append(
            Epoch(
                index=self._epoch,
                began_s=self._began_s,
                batches=self._nth,
                wall_s=now - self._began_s,
                iterator_s=_known(self._iterator_s),
                first_batch_s=_known(self._first_s),
                closing_s=_known(now - asked_s) if exhausted else None,
            )
        )


def _known(value: float) -> float | None:
    return None if value != value else value


def _epoch_batches(
    epoch: npt.NDArray[np.float64], nth: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Of each batch's epoch, by now."""
    _, which = np.unique(epoch, return_inverse=True)
    length = np.zeros(len(epoch))
    np.maximum.at(length, which, nth + 1)
    return length[which]


def _column(name: str, values: npt.NDArray[np.float64]) -> tuple[float | int | None, ...]:
    if np.isnan(values).all():
        return ()
    if name in _WHOLE:
        return tuple(int(value) for value in values)
    return tuple(_known(value) for value in values.tolist())
