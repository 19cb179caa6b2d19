"""Which setting of a grid to try next: one that can change the answer, and no other.

A run with one worker and one with two say what the others would give. What is predicted to be best
is tried; it says how wrong the prediction was, and so does each trial after it. Settings are left
untried that cannot be better by more than `EQUALLY_FAST`, nor as good and cheaper.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pipeprof.analyze.predict.calibrate import Calibration, calibrate
from pipeprof.analyze.predict.predict import Prediction, predict
from pipeprof.analyze.predict.workload import Measured, Setting
from pipeprof.analyze.profile.drift import drift_of
from pipeprof.analyze.profile.intervals import NORMAL_90
from pipeprof.analyze.sweep.noise import Noise
from pipeprof.analyze.thresholds import EQUALLY_FAST

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
    """``batches_per_s`` at its best, with 95 % confidence: what many runs of it would give."""
    interval: tuple[float, float]
    """90 % of what one next run of as long gives: ``most``, widened by what runs differ by."""


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


def plan(
    grid: Sequence[Setting], tried: Sequence[Measured], cores: float, noise: Noise | None = None
) -> Plan:
    """``tried``: what was run, in any order; each setting once. ``noise``: between runs of one
    setting; ``None``: as ``tried`` drift. It widens the intervals, and calls for no trial: what a
    setting gives by the chance of one run is nothing that another run would settle.

    Raises `UsageError` when a run was too short."""
    noise = noise or Noise.of([drift_of(run.columns) for run in tried])
    known = {run.setting for run in tried}
    first = calibration(grid)
    for setting in first:
        if setting not in known:
            return Plan(setting)
    found = calibrate([run for run in tried if run.setting in first or not run.setting.num_workers],
                      cores)  # fmt: skip
    left = [each for each in grid if each not in known]
    outlooks = tuple(_outlooks(left, tried, found, noise))
    best = max(run.batches_per_s for run in tried)
    better = [each for each in outlooks if each.most > best * (1 + EQUALLY_FAST)]
    if better:
        return Plan(max(better, key=lambda each: each.batches_per_s).setting, outlooks)
    near = best * (1 - EQUALLY_FAST)
    chosen = min(_cost(run.setting) for run in tried if run.batches_per_s >= near)
    cheaper = [
        each.setting for each in outlooks
        if each.batches_per_s >= near and _cost(each.setting) < chosen
    ]  # fmt: skip
    return Plan(min(cheaper, key=_cost, default=None), outlooks)


def _cost(setting: Setting) -> tuple[int, int]:
    return setting.num_workers, setting.prefetch_factor if setting.num_workers else 0


def _outlooks(
    settings: Sequence[Setting], tried: Sequence[Measured], found: Calibration, noise: Noise
) -> list[Outlook]:
    off = {run.setting: run.batches_per_s / _predicted(found, run).batches_per_s for run in tried}
    outlooks = []
    for setting in settings:
        like = _nearest(setting, tried)
        predicted = _predicted(found, Measured(setting, like.columns))
        rate = predicted.batches_per_s * off[like.setting]
        least, most = (end * off[like.setting] for end in predicted.interval)
        if like.setting.num_workers == setting.num_workers:
            least, most = (max(least, rate * (1 - _ALIKE - 2 * found.noise)),
                           min(most, rate * (1 + _ALIKE + 2 * found.noise)))  # fmt: skip
        next_run = noise.widen(rate, (least, most), runs=1.0, confidence=NORMAL_90)
        outlooks.append(Outlook(setting, rate, most, next_run))
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


def _predicted(found: Calibration, run: Measured) -> Prediction:
    """Of the setting of ``run``, with its steps; by how far off that is, runs of settings like it
    tell."""
    return predict(
        found, run.setting, run.columns.step_s, rounds=_ROUNDS, measured=run.setting.num_workers
    )
