"""What a live view says of one loader, from the rows that its recorder is given anyway."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from math import isfinite
from typing import Any

import numpy as np

from pipeprof.analyze.profile.batch_table import Columns
from pipeprof.analyze.profile.stage_times import queue_depth, stage_seconds
from pipeprof.analyze.profile.stall_attribution import causes
from pipeprof.measure.rows import COLUMNS, Floats
from pipeprof.model import UNWATCHED, Stage
from pipeprof.report.live import LiveView

WINDOW_S = 10.0
"""The last seconds."""
_MOST, _FEWEST = 1024, 8
"""Batches in the last seconds, however long they take."""
_NTH, _ASKED, _DELIVERED, _DONE, _PAUSE, _WORKER = (
    COLUMNS.index(name) for name in ("nth", "asked_s", "delivered_s", "done_s", "pause_s", "worker")
)
_NOT_SEEN = ("h2d_s", "device_wait_s")
"""Come later, or not at all."""
_INSIDE = (Stage.READ, Stage.DECODE, Stage.TRANSFORM)
_SHOWN = (*_INSIDE, Stage.FETCH, Stage.COLLATE, Stage.TRANSFER, Stage.PIN, Stage.STEP)


class LiveFigures:
    """Grows by `add`, which costs a few sums; `of_now` works out the rest."""

    def __init__(self, warmup: int, capacity: int) -> None:
        """``warmup``: batches of an epoch's start that count for nothing but the last seconds."""
        self.spent_s = 0.0
        """On showing this loader."""
        self._warmup = warmup
        self._capacity = capacity
        self._recent, self._watched = _Last(), _Last()
        self._wait_s = self._turn_s = 0.0
        self._seen: dict[str, None] = {}
        """Stages that took time in any batch so far: a panel that keeps its height is calm."""

    def add(self, table: Floats) -> None:
        """[batches, `COLUMNS`], the next of the run."""
        counted = table[table[:, _NTH] >= self._warmup]
        self._wait_s += float((counted[:, _DELIVERED] - counted[:, _ASKED]).sum())
        self._turn_s += float((counted[:, _DONE] - counted[:, _ASKED]).sum())
        self._turn_s -= float(np.nansum(counted[:, _PAUSE]))
        self._recent.add(table)
        self._watched.add(table[table[:, _WORKER] != UNWATCHED])

    def of_now(self, view: LiveView) -> LiveView:
        """``view`` with what is known by now; its ``length`` must be told."""
        columns = self._recent.columns()
        watched = self._watched.columns()
        turn_s, wait_s = float(columns.cycle_s.sum()), float(columns.wait_s.sum())
        if not turn_s > 0:
            return view
        left = view.length - view.batches if view.length is not None else None
        depth = _mean(queue_depth(watched, self._capacity))
        return replace(
            view,
            window_s=float(columns.done_s[-1] - columns.asked_s[0]),
            left_s=turn_s / len(columns) * left if left is not None and left >= 0 else None,
            samples_per_s=float(columns.samples.sum()) / turn_s,
            starved=wait_s / turn_s,
            starved_of_all=self._wait_s / self._turn_s if self._turn_s > 0 else None,
            waits_for=_most(watched),
            ready=depth if self._capacity else None,
            capacity=self._capacity,
            stages=self._stages(watched),
        )

    def _stages(self, columns: Columns) -> dict[str, float | None]:
        """Of `fetch` its parts, where these are known."""
        means = {stage: _mean(seconds) for stage, seconds in stage_seconds(columns).items()}
        self._seen.update((str(stage), None) for stage in _SHOWN if means[stage])
        if any(str(stage) in self._seen for stage in _INSIDE):
            self._seen.pop(str(Stage.FETCH), None)
        return {str(stage): means[stage] for stage in _SHOWN if str(stage) in self._seen}


class _Last:
    """The batches of the last seconds."""

    def __init__(self) -> None:
        self._tables: deque[Floats] = deque()
        self._rows = 0

    def add(self, table: Floats) -> None:
        """[batches, `COLUMNS`]"""
        if not len(table):
            return
        self._tables.append(table)
        self._rows += len(table)
        while self._rows - len(self._tables[0]) >= _MOST:
            self._rows -= len(self._tables.popleft())

    def columns(self) -> Columns:
        table = np.concatenate([np.empty((0, len(COLUMNS))), *self._tables])[-_MOST:]
        if len(table):
            late = np.searchsorted(table[:, _DONE], table[-1, _DONE] - WINDOW_S)
            table = table[min(int(late), max(0, len(table) - _FEWEST)) :]
        arrays: dict[str, Any] = dict(zip(COLUMNS, table.T, strict=True))
        unknown = np.full(len(table), np.nan)
        return Columns({**arrays, **dict.fromkeys(_NOT_SEEN, unknown)})


def _mean(values: Floats) -> float | None:
    known = values[np.isfinite(values)]
    mean = float(known.mean()) if len(known) else float("nan")
    return mean if isfinite(mean) else None


def _most(columns: Columns) -> str | None:
    """What most of the wait is charged to."""
    charges = {name: float(seconds.sum()) for name, seconds in causes(columns)[0].items()}
    most = max(charges, key=lambda name: charges[name], default="")
    return most if most and charges[most] > 0 else None
