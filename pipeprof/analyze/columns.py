"""A batch log as arrays, and which of its rows belong to the steady state."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import numpy.typing as npt

from pipeprof.model import BatchLog

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]


class Columns:
    """Every column of a `BatchLog` as float64, unknown as NaN; times in seconds."""

    def __init__(self, log: BatchLog) -> None:
        self._arrays: dict[str, Floats] = {
            field.name: np.array(getattr(log, field.name), dtype=np.float64)
            for field in fields(log)
        }

    def __getattr__(self, name: str) -> Floats:
        try:
            return self._arrays[name]
        except KeyError:
            raise AttributeError(name) from None

    def __len__(self) -> int:
        return len(self._arrays["index"])

    def take(self, mask: Mask) -> Columns:
        taken = object.__new__(Columns)
        taken._arrays = {name: array[mask] for name, array in self._arrays.items()}
        return taken

    @property
    def wait_s(self) -> Floats:
        return self.delivered_s - self.asked_s

    @property
    def step_s(self) -> Floats:
        return self.done_s - self.delivered_s

    @property
    def cycle_s(self) -> Floats:
        """One turn of the training loop: asked → next asked."""
        return self.done_s - self.asked_s


def steady(columns: Columns, warmup: int) -> Mask:
    """Rows past the first ``warmup`` batches of their epoch.

    A run so short that this would leave less than half of it keeps its later half.
    """
    count = len(columns)
    if not count:
        return np.zeros(0, dtype=bool)
    starts = np.flatnonzero(np.diff(columns.epoch, prepend=-1.0))
    since_start = np.arange(count) - np.repeat(starts, np.diff(np.append(starts, count)))
    mask = since_start >= warmup
    if 2 * int(mask.sum()) < count:
        mask = np.arange(count) >= min(warmup, count // 2)
    return mask


def slice_log(log: BatchLog, start: int, stop: int) -> BatchLog:
    """Consecutive rows of ``log``."""
    return BatchLog(*(getattr(log, field.name)[start:stop] for field in fields(log)))
