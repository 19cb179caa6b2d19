"""Hold batches as arrays, and select those of the steady state."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import fields
from itertools import compress

import numpy as np
import numpy.typing as npt

from pipeprof.model import UNWATCHED, BatchLog

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.intp]


_TELLING = 0.1
"""Waits for this loader, relative to those for others, which tell how much of these the accelerator
was busy. Shorter ones may end before it has caught up."""


class Columns:
    """The columns of a `BatchLog` by name, as float64 arrays.

    [batches]; times are in seconds; NaN is unknown.
    """

    def __init__(self, arrays: Mapping[str, Floats]) -> None:
        self._arrays = arrays

    @classmethod
    def of(cls, log: BatchLog, names: Collection[str] | None = None) -> Columns:
        """Return the columns of ``log``; only those of these ``names``, if they are given."""
        unknown = np.full(len(log.index), np.nan)
        names = names or [field.name for field in fields(log)]
        columns = {name: getattr(log, name) for name in names}
        return cls(
            {
                name: np.array(column, dtype=np.float64) if column else unknown
                for name, column in columns.items()
            }
        )

    def __getattr__(self, name: str) -> Floats:
        try:
            return self._arrays[name]
        except KeyError:
            raise AttributeError(name) from None

    def __len__(self) -> int:
        return len(self._arrays["index"])

    def take(self, mask: Mask) -> Columns:
        """Return the rows in ``mask``."""
        if mask.all():  # the usual case, in which a copy would be expensive
            return self
        return Columns({name: array[mask] for name, array in self._arrays.items()})

    def at(self, rows: Rows) -> Columns:
        """Return the given rows in their order."""
        return Columns({name: array[rows] for name, array in self._arrays.items()})

    def replaced(self, **arrays: Floats) -> Columns:
        """Return the columns with ``arrays`` in the place of those of the same name."""
        return Columns({**self._arrays, **arrays})

    @property
    def watched(self) -> Mask:
        """Which batches were sampled with all their records. The others were only clocked."""
        mask: Mask = self.worker != UNWATCHED
        return mask

    @property
    def wait_s(self) -> Floats:
        """The time that the training loop waited for each batch on the host."""
        return self.delivered_s - self.asked_s

    @property
    def stall_s(self) -> Floats:
        """The time that the accelerator waited for each batch, or the loop where that is unknown.
        Waits for other loaders are not part of it.

        A loop that runs ahead of its accelerator may wait while the accelerator is busy. This is
        then idle only for the last part of the wait. Where an accelerator was observed around some
        batches only, it is taken to be idle for the same share of the other waits.
        """
        wait_s, known = self.wait_s, np.isfinite(self.device_wait_s)
        stall_s: Floats = np.fmin(wait_s, self.device_wait_s)
        known_s = float(wait_s[known].sum())
        if known.all() or not known_s > 0:
            return stall_s
        return np.where(known, stall_s, wait_s * (float(stall_s[known].sum()) / known_s))

    @property
    def hidden_s(self) -> Floats:
        """The part of the wait for each batch in which the accelerator was still busy; 0 where none
        is observed."""
        known = "device_wait_s" in self._arrays
        return self.wait_s - self.stall_s if known else np.zeros(len(self))

    @property
    def paused_s(self) -> Floats:
        """The pause between delivered and done; 0 where there was none."""
        pause_s = self._arrays.get("pause_s")
        return np.zeros(len(self)) if pause_s is None else np.fmax(pause_s, 0.0)

    @property
    def others_s(self) -> Floats:
        """The wait for other loaders between delivered and done; 0 where there are none."""
        others_s = self._arrays.get("others_s")
        return np.zeros(len(self)) if others_s is None else np.nan_to_num(others_s)

    @property
    def others_received_s(self) -> Floats:
        """The part of `others_s` that would remain if the batches of other loaders lay ready."""
        received_s = self._arrays.get("others_received_s")
        return np.zeros(len(self)) if received_s is None else np.nan_to_num(received_s)

    @property
    def others_stall_s(self) -> Floats:
        """The part of `others_s` in which the accelerator waited. Where one was observed, it is
        taken to wait for the same share of these waits as of those for this loader, if the loop
        waits for that at all."""
        wait_s, others_s = float(self.wait_s.sum()), self.others_s
        if not wait_s > _TELLING * float(others_s.sum()):
            return others_s
        return others_s * (float(self.stall_s.sum()) / wait_s)

    @property
    def starved_s(self) -> Floats:
        """The time that the accelerator waited for the batches of all loaders."""
        return self.stall_s + self.others_stall_s

    @property
    def step_s(self) -> Floats:
        """The training step on each batch, without the pause and the wait for other loaders."""
        return self.done_s - self.delivered_s - self.paused_s - self.others_s

    @property
    def cycle_s(self) -> Floats:
        """One iteration of the training loop, from asked to next asked, without the pause."""
        return self.done_s - self.asked_s - self.paused_s

    @property
    def made_s(self) -> Floats:
        """The time to fetch and collate each batch."""
        return self.fetch_end_s - self.fetch_start_s


def steady(columns: Columns, warmup: int) -> Mask:
    """Return which batches are `warmed_up` and not affected by a pause (`without_pauses`)."""
    return warmed_up(columns, warmup) & without_pauses(columns)


def warmed_up(columns: Columns, warmup: int) -> Mask:
    """Return which batches come after the first ``warmup`` of their epoch. Of a short epoch it is
    the later half."""
    if not len(columns):
        return np.zeros(0, dtype=bool)
    mask: Mask = columns.nth >= np.minimum(warmup, np.floor(columns.epoch_batches / 2))
    return mask


def without_pauses(columns: Columns) -> Mask:
    """Return which batches neither lay ready during a pause nor have one in their step.

    A step with a pause is left out whole, because what surrounds the pause, such as saving a model,
    is no step either. Where most steps include a pause, they count without it.
    """
    paused = columns.paused_s > 0
    if 2 * paused.sum() > len(paused):
        paused[:] = False
    mask: Mask = ~paused & np.isnan(columns.rested)
    return mask


def pinned_before_s(pinned_s: Floats, index: Floats) -> Floats:
    """Return when the thread that pins was done with the batch before each; NaN where there is none
    or it was not recorded, so that numbers are missing in ``index``. [batches], seconds."""
    numbered, order = np.argsort(index), np.argsort(pinned_s)
    window = np.zeros(len(index))
    window[numbered[1:]] = np.cumsum(np.diff(index[numbered]) > 1)
    same = window[order[1:]] == window[order[:-1]]
    before_s = np.full(len(pinned_s), np.nan)
    before_s[order[1:][same]] = pinned_s[order[:-1][same]]
    return before_s


def next_of_worker(columns: Columns, order: Floats) -> Rows:
    """Return the row of the batch that each batch's worker fetched next, by ascending ``order``;
    -1 where there is none or it is unknown."""
    following = np.full(len(columns), -1)
    rows = np.lexsort((order, columns.worker))
    same = columns.worker[rows[1:]] == columns.worker[rows[:-1]]
    following[rows[:-1][same]] = rows[1:][same]
    return following


def take_rows(log: BatchLog, mask: Mask) -> BatchLog:
    """Return the rows of ``log`` in ``mask``."""
    if mask.all():
        return log
    return BatchLog(*(tuple(compress(getattr(log, field.name), mask)) for field in fields(log)))


def slice_log(log: BatchLog, start: int, stop: int) -> BatchLog:
    """Return the rows of ``log`` from ``start`` to ``stop``."""
    return BatchLog(*(getattr(log, field.name)[start:stop] for field in fields(log)))
