"""Choose which setting of a grid to try next: only one that can change the recommendation.

A run with one worker and one with two predict the other settings. The one that is predicted to be
best is tried next, and each trial corrects the predictions. A setting is not tried if it cannot be
better by more than `EQUALLY_FAST`, and cannot be as good and cheaper.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pipeprof.analyze.predict.calibrate import Calibration, calibrate
from pipeprof.analyze.predict.predict import Prediction, predict
from pipeprof.analyze.predict.workload import Measured, Setting
from pipeprof.analyze.profile.drift import drift_of
from pipeprof.analyze.profile.intervals import NORMAL_90
from pipeprof.analyze.sweep.noise import Noise
from pipeprof.analyze.thresholds import EQUALLY_FAST

_ROUNDS = 3
"""Rounds of the bootstrap in a prediction."""
_SAME_WORKERS_ERROR = 0.01
"""Relative difference, besides noise, of the prediction errors of settings with equal workers."""


@dataclass(frozen=True)
class Outlook:
    """The prediction for a setting that was not tried."""

    setting: Setting
    batches_per_s: float
    most: float
    """Upper bound of the mean of many runs in batches/s, with 95 % confidence."""
    interval: tuple[float, float]
    """90 % interval of the next run in batches/s, including the noise between runs."""


@dataclass(frozen=True)
class Plan:
    """What to do next."""

    trial: Setting | None
    """The setting to try next; ``None`` where no other can change the recommendation."""
    outlooks: tuple[Outlook, ...] = ()
    """Predictions for all untried settings; empty before both calibration runs."""


def calibration(grid: Sequence[Setting]) -> tuple[Setting, Setting]:
    """Return the two settings to begin with, one worker and two; they may not be in ``grid``.

    They prefetch as torch does by default, or nearly so. A worker that prefetches a single batch is
    idle while it is handed over, unlike those of the settings that are worth choosing.
    """
    prefetch = {each.prefetch_factor for each in grid if each.num_workers} or {2}
    usual = min(prefetch, key=lambda each: (abs(each - 2), each))
    one, two = (replace(grid[0], num_workers=workers, prefetch_factor=usual) for workers in (1, 2))
    return one, two


def plan(
    grid: Sequence[Setting], tried: Sequence[Measured], cores: float, noise: Noise | None = None
) -> Plan:
    """Return the setting of ``grid`` to try next, and predictions for the untried ones. ``tried``
    has the runs so far, each setting once. ``noise`` between runs of one setting widens intervals,
    but leads to no more trials; ``None``: it is estimated from the drift of ``tried``. Raises
    `UsageError` when a run was too short."""
    noise = noise or Noise.of([drift_of(run.columns) for run in tried])
    if tried:  # all have the order and the pinning of the loader
        like = tried[0].setting
        grid = [_like(each, like) for each in grid]
        tried = [replace(run, setting=_like(run.setting, like)) for run in tried]
    known = {run.setting for run in tried}
    first = calibration(grid)
    for setting in first:
        if setting not in known:
            return Plan(setting)
    calibrating = [run for run in tried if run.setting in first or not run.setting.num_workers]
    others = [run for run in tried if run.setting not in first and run.setting.num_workers]
    found = calibrate(calibrating, cores, others)
    untried = [each for each in grid if each not in known]
    outlooks = tuple(_outlooks(untried, tried, found, noise))
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


def _like(setting: Setting, other: Setting) -> Setting:
    """Return ``setting`` with the order and the pinning of ``other``."""
    return replace(setting, in_order=other.in_order, pin_memory=other.pin_memory)


def _cost(setting: Setting) -> tuple[int, int]:
    return setting.num_workers, setting.prefetch_factor if setting.num_workers else 0


def _outlooks(
    settings: Sequence[Setting], tried: Sequence[Measured], found: Calibration, noise: Noise
) -> list[Outlook]:
    factors = {
        run.setting: run.batches_per_s / _predicted(found, run).batches_per_s for run in tried
    }
    outlooks = []
    for setting in settings:
        nearest = _nearest(setting, tried)
        predicted = _predicted(found, Measured(setting, nearest.columns))
        rate = predicted.batches_per_s * factors[nearest.setting]
        least, most = (end * factors[nearest.setting] for end in predicted.interval)
        if nearest.setting.num_workers == setting.num_workers:
            error = _SAME_WORKERS_ERROR + 2 * found.noise
            least, most = max(least, rate * (1 - error)), min(most, rate * (1 + error))
        next_run = noise.widen(rate, (least, most), runs=1.0, confidence=NORMAL_90)
        outlooks.append(Outlook(setting, rate, most, next_run))
    return outlooks


def _nearest(setting: Setting, tried: Sequence[Measured]) -> Measured:
    """Return the run with the most similar number of workers, and then prefetch factor."""
    return min(
        tried,
        key=lambda run: (
            abs(run.setting.num_workers - setting.num_workers),
            abs(run.setting.prefetch_factor - setting.prefetch_factor),
        ),
    )


def _predicted(found: Calibration, run: Measured) -> Prediction:
    """Predict the setting of ``run``, with the step times of that run."""
    return predict(
        found, run.setting, run.columns.step_s, rounds=_ROUNDS, measured=run.setting.num_workers
    )
