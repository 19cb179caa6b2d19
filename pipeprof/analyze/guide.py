"""Which setting of a grid to try next: one that can change the answer, and no other.

A run with one worker and one with two say what the others would give. What is predicted to be best
is tried; it says how wrong the prediction was, and so does each trial after it. Settings are left
untried that cannot be better by more than `CLOSE`, nor as good and cheaper.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pipeprof.analyze.calibrate import Calibration, calibrate
from pipeprof.analyze.choose import CLOSE
from pipeprof.analyze.demand import Setting
from pipeprof.analyze.predict import predict
from pipeprof.analyze.way import Measured

_ROUNDS = 3
_ALIKE = 0.01
"""Predictions of two settings with as many workers are off by the same, to within so much; and by
what runs differ."""


@dataclass(frozen=True)
class Outlook:
    """What a setting that was not tried would give."""

    setting: Setting
    batches_per_s: float
    most: float
    """``batches_per_s`` at its best, with 95 % confidence."""


@dataclass(frozen=True)
class Plan:
    """What to do next."""

    trial: Setting | None
    """``None``: nothing else can change the answer."""
    outlooks: tuple[Outlook, ...] = ()
    """Of all that were not tried; empty while too little is known."""


def calibration(grid: Sequence[Setting]) -> tuple[Setting, Setting]:
    """The two settings to begin with, which may not be of the ``grid``: one worker that waits for
    its next batch, and two that do not."""
    prefetch = sorted({each.prefetch_factor for each in grid if each.num_workers}) or [2]
    return Setting(1, prefetch[0]), Setting(2, min(prefetch, key=lambda each: abs(each - 2)))


def plan(grid: Sequence[Setting], tried: Sequence[Measured], cores: float) -> Plan:
    """``tried``: what was run, in any order. Raises `UsageError` when a run was too short."""
    known = {run.setting for run in tried}
    first = calibration(grid)
    for setting in first:
        if setting not in known:
            return Plan(setting)
    found = calibrate([run for run in tried if run.setting in first or not run.setting.num_workers],
                      cores)  # fmt: skip
    outlooks = tuple(_outlooks([each for each in grid if each not in known], tried, found))
    best = max(run.batches_per_s for run in tried)
    better = [each for each in outlooks if each.most > best * (1 + CLOSE)]
    if better:
        return Plan(max(better, key=lambda each: each.batches_per_s).setting, outlooks)
    near = best * (1 - CLOSE)
    chosen = min(_cost(run.setting) for run in tried if run.batches_per_s >= near)
    cheaper = [
        each.setting for each in outlooks
        if each.batches_per_s >= near and _cost(each.setting) < chosen
    ]  # fmt: skip
    return Plan(min(cheaper, key=_cost, default=None), outlooks)


def _cost(setting: Setting) -> tuple[int, int]:
    return setting.num_workers, setting.prefetch_factor if setting.num_workers else 0


def _outlooks(
    settings: Sequence[Setting], tried: Sequence[Measured], found: Calibration
) -> list[Outlook]:
    off = {run.setting: run.batches_per_s / _predicted(found, run)[0] for run in tried}
    outlooks = []
    for setting in settings:
        like = _nearest(setting, tried)
        rate, most = _predicted(found, Measured(setting, like.columns))
        rate, most = rate * off[like.setting], most * off[like.setting]
        if like.setting.num_workers == setting.num_workers:
            most = min(most, rate * (1 + _ALIKE + 2 * found.noise))
        outlooks.append(Outlook(setting, rate, most))
    return outlooks


def _nearest(setting: Setting, tried: Sequence[Measured]) -> Measured:
    """The run whose workers, and then whose prefetching, are most like those of ``setting``."""
    return min(
        tried,
        key=lambda run: (
            abs(run.setting.num_workers - setting.num_workers),
            abs(run.setting.prefetch_factor - setting.prefetch_factor),
        ),
    )


def _predicted(found: Calibration, run: Measured) -> tuple[float, float]:
    """Batches/s in the setting of ``run``, with its steps, and their upper end; by how far off that
    is, runs of settings like it tell."""
    told = predict(
        found, run.setting, run.columns.step_s, rounds=_ROUNDS, measured=run.setting.num_workers
    )
    return told.batches_per_s, told.interval[1]
