"""Compute the figures of the live view from the rows that the recorder receives anyway."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from math import isfinite
from typing import Any

import numpy as np

from pipeprof.analyze.profile.batch_table import Columns
from pipeprof.analyze.profile.stage_times import queue_depth, stage_seconds
from pipeprof.analyze.profile.stall_attribution import OTHER_LOADERS, causes
from pipeprof.measure.rows import COLUMNS, Floats
from pipeprof.model import UNWATCHED, Stage
from pipeprof.report.live import LiveView

WINDOW_S = 10.0
"""Seconds back from now that the figures are computed over."""
_MOST, _FEWEST = 1024, 8
"""Most and fewest batches of the window, however long they take."""
_NTH, _ASKED, _DELIVERED, _DONE, _PAUSE, _OTHERS, _WORKER, _SAMPLES = (
    COLUMNS.index(name)
    for name in (
        "nth", "asked_s", "delivered_s", "done_s", "pause_s", "others_s", "worker", "samples"
    )
)  # fmt: skip
_SHOWN_COLUMNS = (*COLUMNS, "device_wait_s")
"""Columns of the window. `h2d_s` is filled in later, and not shown."""
_INSIDE_FETCH = (Stage.READ, Stage.DECODE, Stage.TRANSFORM)
_SHOWN = (*_INSIDE_FETCH, Stage.FETCH, Stage.COLLATE, Stage.TRANSFER, Stage.PIN, Stage.STEP)


class LiveFigures:
    """The figures of one loader. `add` only sums, and `complete` computes the rest."""

    def __init__(self) -> None:
        self.warmup = 0
        """The first so many batches of an epoch count only in the window."""
        self.capacity = 0
        """Most batches that workers prefetch."""
        self.main_core_wait: float | None = None
        """Share of the run, 0..1, in which the training loop waited for a core."""
        self._recent, self._recorded = _Window(), _Window()
        self._stall_s = self._cycle_s = 0.0
        self._batches = self._samples = self._pause_s = 0.0
        self._ever: set[str] = set()
        """Stages that were exported once, and so are always."""
        self._stages_so_far: dict[str, None] = {}
        """Stages that took time in any batch, so that the panel does not change its height."""

    def add(self, table: Floats, stalled_share: float = 1.0) -> None:
        """Add the next batches of the run: [batches, `COLUMNS`]. Of their waits, this share is
        taken to have stalled the accelerator."""
        stall_s = stalled_share * (table[:, _DELIVERED] - table[:, _ASKED])
        table = np.column_stack([table, stall_s])
        counted = table[table[:, _NTH] >= self.warmup]
        self._stall_s += float(counted[:, -1].sum() + np.nansum(counted[:, _OTHERS]))
        self._cycle_s += float((counted[:, _DONE] - counted[:, _ASKED]).sum())
        self._cycle_s -= float(np.nansum(counted[:, _PAUSE]))
        self._batches += len(table)
        self._samples += float(np.nansum(table[:, _SAMPLES]))
        self._pause_s += float(np.nansum(table[:, _PAUSE]))
        self._recent.add(table)
        self._recorded.add(table[table[:, _WORKER] != UNWATCHED])

    def complete(self, view: LiveView) -> LiveView:
        """Return ``view``, which has name and position, with the figures that are known by now."""
        columns = self._recent.columns()
        recorded = self._recorded.columns()
        cycle_s, stall_s = float(columns.cycle_s.sum()), float(columns.starved_s.sum())
        if not cycle_s > 0:
            return view
        left = view.length - view.batches if view.length is not None else None
        depth = _mean(queue_depth(recorded, self.capacity))
        return replace(
            view,
            window_s=float(columns.done_s[-1] - columns.asked_s[0]),
            left_s=cycle_s / len(columns) * left if left is not None and left >= 0 else None,
            samples_per_s=float(columns.samples.sum()) / cycle_s,
            starved=stall_s / cycle_s,
            starved_of_all=self._stall_s / self._cycle_s if self._cycle_s > 0 else None,
            waits_for=self._main_cause(recorded),
            ready=depth if self.capacity else None,
            capacity=self.capacity,
            stages=self._stages(recorded),
        )

    def metrics(self) -> dict[str, float]:
        """Return the figures of the window by their names in `Profile.metrics`, and running totals
        since the run began, whose names end in ``_total``."""
        columns, recorded = self._recent.columns(), self._recorded.columns()
        cycle_s, stall_s = float(columns.cycle_s.sum()), float(columns.starved_s.sum())
        figures: dict[str, float | None] = {
            "batches_total": self._batches,
            "samples_total": self._samples,
            "wait_seconds_total": self._stall_s,
            "cycle_seconds_total": self._cycle_s,
            "pause_seconds_total": self._pause_s,
        }
        if cycle_s > 0:
            figures["starved_fraction"] = stall_s / cycle_s
            figures["samples_per_s"] = float(columns.samples.sum()) / cycle_s
        if self.capacity:
            figures["queue/mean"] = _mean(queue_depth(recorded, self.capacity))
        for stage, seconds in stage_seconds(columns).items():
            known = seconds[np.isfinite(seconds)]
            if known.any():
                self._ever.add(str(stage))
            if len(known) and str(stage) in self._ever:
                p50_s, p95_s, p99_s = np.percentile(known, (50, 95, 99))
                quantiles = {"p50_s": p50_s, "p95_s": p95_s, "p99_s": p99_s}
                for name, value in {"mean_s": known.mean(), **quantiles}.items():
                    figures[f"stages/{stage}/{name}"] = float(value)
        charges = self._charges(recorded)
        charged_s = sum(charges.values())
        for cause, charge_s in charges.items():
            figures[f"blame/{cause}"] = charge_s / charged_s if charged_s > 0 else 0.0
        return {name: each for name, each in figures.items() if each is not None}

    def _charges(self, columns: Columns) -> dict[str, float]:
        """Return the seconds of the wait by their cause."""
        charged, _ = causes(columns, self.main_core_wait)
        if (others_s := columns.others_stall_s).any():
            charged[OTHER_LOADERS] = others_s
        return {name: float(seconds.sum()) for name, seconds in charged.items()}

    def _main_cause(self, columns: Columns) -> str | None:
        """Return the cause of most of the wait; ``None`` where nothing waited."""
        charges = self._charges(columns)
        largest = max(charges, key=lambda name: charges[name], default="")
        return largest if largest and charges[largest] > 0 else None

    def _stages(self, columns: Columns) -> dict[str, float | None]:
        """Return mean seconds per stage, with the parts of `fetch` in its place if known."""
        means = {stage: _mean(seconds) for stage, seconds in stage_seconds(columns).items()}
        shown = self._stages_so_far
        shown.update((str(stage), None) for stage in _SHOWN if means[stage])
        if any(str(stage) in shown for stage in _INSIDE_FETCH):
            shown.pop(str(Stage.FETCH), None)
        return {str(stage): means[stage] for stage in _SHOWN if str(stage) in shown}


class _Window:
    """The batches of the last `WINDOW_S` seconds."""

    def __init__(self) -> None:
        self._tables: deque[Floats] = deque()
        self._rows = 0

    def add(self, table: Floats) -> None:
        """Add batches: [batches, `_SHOWN_COLUMNS`]."""
        if not len(table):
            return
        self._tables.append(table)
        self._rows += len(table)
        while self._rows - len(self._tables[0]) >= _MOST:
            self._rows -= len(self._tables.popleft())

    def columns(self) -> Columns:
        table = np.concatenate([np.empty((0, len(_SHOWN_COLUMNS))), *self._tables])[-_MOST:]
        if len(table):
            first = np.searchsorted(table[:, _DONE], table[-1, _DONE] - WINDOW_S)
            table = table[min(int(first), max(0, len(table) - _FEWEST)) :]
        arrays: dict[str, Any] = dict(zip(_SHOWN_COLUMNS, table.T, strict=True))
        return Columns({**arrays, "h2d_s": np.full(len(table), np.nan)})


def _mean(values: Floats) -> float | None:
    known = values[np.isfinite(values)]
    mean = float(known.mean()) if len(known) else float("nan")
    return mean if isfinite(mean) else None
