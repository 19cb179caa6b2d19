"""Predict the settings of a grid that were not tried, from the runs so far.

A run with one worker and one with two predict the other settings, and each further run corrects the
predictions. With the run of one worker alone the intervals are wider.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf, log2

import numpy as np

from pipeprof.analyze.predict.calibrate import Calibration, calibrate
from pipeprof.analyze.predict.predict import Prediction, predict
from pipeprof.analyze.predict.run_hypotheses import RunContext
from pipeprof.analyze.predict.single_run import SingleRun
from pipeprof.analyze.predict.workload import Measured, Setting
from pipeprof.analyze.profile.batch_table import Columns, Mask
from pipeprof.analyze.profile.drift import drift_of
from pipeprof.analyze.profile.intervals import NORMAL_90
from pipeprof.analyze.profile.worker_activity import rows_by_worker
from pipeprof.analyze.sweep.noise import Noise
from pipeprof.analyze.thresholds import EQUALLY_FAST

_ROUNDS = 3
"""Rounds of the bootstrap in a prediction."""
_LEAST_READY = 20
"""Fewest batches that show what handing over a ready batch takes."""
_SAME_WORKERS_ERROR = 0.01
"""Relative difference, besides noise, of the prediction errors of settings with equal workers."""


@dataclass(frozen=True)
class Outlook:
    """The prediction for a setting that was not tried."""

    setting: Setting
    batches_per_s: float
    most: float
    """Upper bound of the mean of many runs in batches/s, with 95 % confidence. It is closer than
    that of ``interval`` where a similar setting was tried, or where no setting can be faster."""
    interval: tuple[float, float]
    """90 % interval of the next run in batches/s, including the noise between runs."""
    may_be_faster: bool
    """Whether it may be faster than all settings that were tried."""


def calibration(grid: Sequence[Setting]) -> tuple[Setting, Setting]:
    """Return the two settings to begin with, one worker and two; they may not be in ``grid``.

    They prefetch as torch does by default, or nearly so. A worker that prefetches a single batch is
    idle while it is handed over, unlike those of the settings that are worth choosing.
    """
    prefetch = {each.prefetch_factor for each in grid if each.num_workers} or {2}
    usual = min(prefetch, key=lambda each: (abs(each - 2), each))
    one, two = (replace(grid[0], num_workers=workers, prefetch_factor=usual) for workers in (1, 2))
    return one, two


def predict_untried(
    grid: Sequence[Setting], tried: Sequence[Measured], cores: float, noise: Noise | None = None
) -> tuple[Outlook, ...]:
    """Predict the settings of ``grid`` that were not tried.

    Args:
        grid: The settings.
        tried: The runs so far, each setting once.
        cores: The cores of the machine.
        noise: How much runs of one setting differ, which widens intervals; ``None``: it is
            estimated from the drift of ``tried``.

    Returns:
        No outlooks while the runs do not show enough.

    Raises:
        UsageError: A run was too short.
    """
    grid, tried = alike(grid, tried)
    noise = noise or Noise.of([drift_of(run.columns) for run in tried])
    known = {run.setting for run in tried}
    one, two = calibration(grid)
    untried = [each for each in grid if each not in known]
    if one not in known:
        return ()
    if two not in known:
        return _outlooks_of_one(untried, tried, cores, noise)
    return _outlooks_of_several(untried, tried, (one, two), cores, noise)


def alike(
    grid: Sequence[Setting], tried: Sequence[Measured]
) -> tuple[Sequence[Setting], Sequence[Measured]]:
    """Return both with the order and the pinning of the first run, which are the loader's."""
    if not tried:
        return grid, tried
    like = tried[0].setting
    return (
        [_like(each, like) for each in grid],
        [replace(run, setting=_like(run.setting, like)) for run in tried],
    )


def _like(setting: Setting, other: Setting) -> Setting:
    """Return ``setting`` with the order and the pinning of ``other``."""
    return replace(setting, in_order=other.in_order, pin_memory=other.pin_memory)


def _outlooks_of_several(
    settings: Sequence[Setting],
    tried: Sequence[Measured],
    first: tuple[Setting, Setting],
    cores: float,
    noise: Noise,
) -> tuple[Outlook, ...]:
    """Predict ``settings`` from all runs, among which are the two of `calibration`, ``first``."""
    calibrating = [run for run in tried if run.setting in first or not run.setting.num_workers]
    others = [run for run in tried if run.setting not in first and run.setting.num_workers]
    found = calibrate(calibrating, cores, others)
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
            likely = most
        else:  # a model is wrong alike about settings that differ by less than a doubling
            likely = rate + (most - rate) * min(1.0, _doublings(setting, nearest.setting))
        outlooks.append(_outlook(setting, rate, (least, most), likely, tried, noise))
    return tuple(outlooks)


def _doublings(one: Setting, other: Setting) -> float:
    """Return how often the workers of the one double up to those of the other."""
    fewer, more = sorted((one.num_workers, other.num_workers))
    if fewer == more:
        return 0.0
    return log2(more / fewer) if fewer else inf


def _outlooks_of_one(
    settings: Sequence[Setting], tried: Sequence[Measured], cores: float, noise: Noise
) -> tuple[Outlook, ...]:
    """Predict ``settings`` from the run with one worker; empty where it does not show enough."""
    run = next(run for run in tried if run.setting.num_workers == 1)
    single = SingleRun.of(run, RunContext(cores))
    if single is None:
        return ()
    predicted = [single.predict_setting(setting, _ROUNDS) for setting in settings]
    return tuple(
        _outlook(each.setting, each.batches_per_s, each.interval, each.interval[1], tried, noise)
        for each in predicted
    )


def _outlook(
    setting: Setting,
    rate: float,
    interval: tuple[float, float],
    most: float,
    tried: Sequence[Measured],
    noise: Noise,
) -> Outlook:
    least_s = _least_cycle_s(tried, bool(setting.num_workers))
    most = min(most, 1 / least_s) if least_s > 0 else most
    next_run = noise.widen(rate, interval, runs=1.0, confidence=NORMAL_90)
    best = max(run.batches_per_s for run in tried)
    return Outlook(setting, rate, most, next_run, most > best * (1 + EQUALLY_FAST))


def _least_cycle_s(tried: Sequence[Measured], with_workers: bool) -> float:
    """Return the least seconds of a batch in any setting: those of the training step.

    With workers, handing over a batch comes on top. Of the batches that were ready when they were
    asked for, and whose worker was idle, a quarter took no longer than that.
    """
    step_s = min(float(run.step_s(run.setting).mean()) for run in tried)
    if not with_workers:
        return step_s
    ready_s = np.concatenate([
        run.columns.stall_s[(run.columns.sent_s < run.columns.asked_s) & _idle(run.columns)]
        for run in tried
    ])  # fmt: skip
    return step_s + (float(np.percentile(ready_s, 25)) if len(ready_s) >= _LEAST_READY else 0.0)


def _idle(columns: Columns) -> Mask:
    """Return for which batches their worker fetched no other one when they were asked for. One that
    does keeps its interpreter from handing over. [batches]"""
    idle = np.zeros(len(columns), dtype=bool)
    for _, rows in rows_by_worker(columns):
        asked = columns.asked_s[rows]
        begun, ended = (
            np.searchsorted(np.sort(moments[rows]), asked, side="right")
            for moments in (columns.fetch_start_s, columns.fetch_end_s)
        )
        idle[rows] = begun == ended
    return idle


def _nearest(setting: Setting, tried: Sequence[Measured]) -> Measured:
    """Return the run whose number of workers, and then prefetch factor, is relatively nearest."""
    return min(
        tried,
        key=lambda run: (
            _doublings(setting, run.setting),
            abs(run.setting.num_workers - setting.num_workers),
            abs(run.setting.prefetch_factor - setting.prefetch_factor),
        ),
    )


def _predicted(found: Calibration, run: Measured) -> Prediction:
    """Predict the setting of ``run``, with the step times of that run."""
    return predict(
        found, run.setting, run.step_s(run.setting), rounds=_ROUNDS,
        measured=run.setting.num_workers,
    )  # fmt: skip
