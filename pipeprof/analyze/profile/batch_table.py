"""Batches as arrays, and which of them belong to the steady state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from itertools import compress

import numpy as np
import numpy.typing as npt

from pipeprof.model import UNWATCHED, BatchLog

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.intp]


class Columns:
    """The columns of a `BatchLog` by name, as float64; unknown is NaN; times in seconds."""

    def __init__(self, arrays: Mapping[str, Floats]) -> None:
        self._arrays = arrays

    @classmethod
    def of(cls, log: BatchLog) -> Columns:
        unknown = np.full(len(log.index), np.nan)
        columns = {field.name: getattr(log, field.name) for field in fields(log)}
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
        if mask.all():  # the usual case, and to copy them all is expensive
            return self
        return Columns({name: array[mask] for name, array in self._arrays.items()})

    def at(self, rows: Rows) -> Columns:
        """Those rows, in that order."""
        return Columns({name: array[rows] for name, array in self._arrays.items()})

    def replaced(self, **arrays: Floats) -> Columns:
        """With these in the place of the columns of the same name."""
        return Columns({**self._arrays, **arrays})

    @property
    def watched(self) -> Mask:
        """Batches that were sampled with all their records; the others were only clocked."""
        mask: Mask = self.worker != UNWATCHED
        return mask

    @property
    def wait_s(self) -> Floats:
        """The stall as observed on the host."""
        return self.delivered_s - self.asked_s

    @property
    def stall_s(self) -> Floats:
        """The stall as observed on the accelerator, or on the host where that is unknown.

        A loop that runs ahead of its accelerator may wait while that is busy, and the accelerator
        is idle only for the last part of the wait.
        """
        return np.fmin(self.wait_s, self.device_wait_s)

    @property
    def paused_s(self) -> Floats:
        """Pause between delivered and done; 0 where there was none."""
        pause_s = self._arrays.get("pause_s")
        return np.zeros(len(self)) if pause_s is None else np.nan_to_num(pause_s)

    @property
    def step_s(self) -> Floats:
        return self.done_s - self.delivered_s - self.paused_s

    @property
    def cycle_s(self) -> Floats:
        """One iteration of the training loop: asked → next asked, less the pause."""
        return self.done_s - self.asked_s - self.paused_s

    @property
    def made_s(self) -> Floats:
        """Fetch and collate of the batch."""
        return self.fetch_end_s - self.fetch_start_s


def steady(columns: Columns, warmup: int) -> Mask:
    """Rows past the first ``warmup`` batches of their epoch, or the later half of an epoch where
    that is more; and without pauses, see `without_pauses`."""
    return warmed_up(columns, warmup) & without_pauses(columns)


def warmed_up(columns: Columns, warmup: int) -> Mask:
    """As `steady`, but without regard to pauses."""
    if not len(columns):
        return np.zeros(0, dtype=bool)
    mask: Mask = columns.nth >= np.minimum(warmup, columns.epoch_batches // 2)
    return mask


def without_pauses(columns: Columns) -> Mask:
    """Neither batches that lay ready during a pause, nor those whose step includes one: what
    surrounds it, as saving the best model after a validation, is no step either. Where most steps
    include a pause, what is left of them are the steps."""
    paused = columns.paused_s > 0
    if 2 * paused.sum() > len(paused):
        paused[:] = False
    mask: Mask = ~paused & np.isnan(columns.rested)
    return mask


def next_of_worker(columns: Columns, order: Floats) -> Rows:
    """The row of the batch that each batch's worker made next, by ascending ``order``; -1: none, or
    unknown."""
    following = np.full(len(columns), -1)
    rows = np.lexsort((order, columns.worker))
    same = columns.worker[rows[1:]] == columns.worker[rows[:-1]]
    following[rows[:-1][same]] = rows[1:][same]
    return following


def take_rows(log: BatchLog, mask: Mask) -> BatchLog:
    """Those rows of ``log``."""
    if mask.all():
        return log
    return BatchLog(*(tuple(compress(getattr(log, field.name), mask)) for field in fields(log)))


def slice_log(log: BatchLog, start: int, stop: int) -> BatchLog:
    """Consecutive rows of ``log``."""
    return BatchLog(*(getattr(log, field.name)[start:stop] for field in fields(log)))
