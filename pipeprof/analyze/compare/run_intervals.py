"""Compute intervals for a run's figures from the batches that its profile still holds.

The bootstrap of `profile.intervals` allows for the correlation of neighbouring batches. It does not
allow for longer effects, such as another process that uses a core for a second. These show as
differences between parts of the run. The wider of the two intervals is used.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from pipeprof.analyze.profile.batch_table import Columns, Floats, steady
from pipeprof.analyze.profile.drift import Drift
from pipeprof.analyze.profile.intervals import ratio_interval, standard_error, student_t
from pipeprof.analyze.profile.stage_times import stage_seconds
from pipeprof.analyze.profile.stall_attribution import OTHER_LOADERS
from pipeprof.analyze.thresholds import LEAST_BATCHES_FOR_VERDICT
from pipeprof.model import BatchLog, Profile, Stage, Throughput

PARTS: Final = 10
"""Consecutive parts of a run that are compared with each other."""
Interval = tuple[float, float]


@dataclass(frozen=True)
class Estimate:
    """A figure with its interval."""

    value: float | None
    """``None`` where it is unknown."""
    interval: Interval | None
    """The 95 % interval; ``None`` where there are too few batches."""


class RunIntervals:
    """The figures of one run with intervals. All seconds are multiplied by ``scale``."""

    def __init__(self, profile: Profile, scale: float) -> None:
        self._profile, self._scale = profile, scale
        columns = _steady(profile)
        self.kept_batches = len(columns)
        self._stages = {str(name): seconds for name, seconds in stage_seconds(columns).items()}
        self._stages[str(Stage.STEP)] = columns.step_s + columns.hidden_s
        self._samples = columns.samples
        self._stall_s, self._cycle_s = columns.starved_s, columns.cycle_s

    @property
    def drift(self) -> Drift | None:
        """How the loop drifted during the run; ``None`` where too few batches were kept."""
        return Drift.of(self._cycle_s)

    @property
    def cycle_s(self) -> float:
        """Mean seconds of a cycle of the training loop."""
        profile = self._profile
        return profile.wall_s / max(profile.measured_batches, 1) * self._scale

    def throughput(self) -> Throughput:
        """Return the throughput with its interval widened by differences between parts."""
        rates = self._profile.throughput
        interval = self._widen(rates.samples_per_s, rates.interval, self._samples)
        return replace(rates, interval=interval)

    def starved(self) -> Estimate:
        """Return the starved fraction of the time, 0..1."""
        diagnosis = self._profile.diagnosis
        if diagnosis.unjudged:
            return Estimate(None, None)
        value = diagnosis.starved_fraction
        if self._profile.measured_batches < LEAST_BATCHES_FOR_VERDICT:
            return Estimate(value, None)
        return Estimate(value, self._widen(value, diagnosis.starved_interval, self._stall_s))

    def stall(self) -> Estimate:
        """Return the mean seconds of stall per batch."""
        profile = self._profile
        if profile.diagnosis.unjudged:
            return Estimate(None, None)
        mean_s = profile.stall_s / max(profile.measured_batches, 1) * self._scale
        return self._mean(mean_s, self._stall_s)

    def stage(self, name: str) -> Estimate:
        """Return the mean seconds of a stage per batch. That of the step is the accelerator's: a
        loop that runs ahead of it waits for batches meanwhile, or for room in its queue."""
        stats = self._profile.stages.get(name)
        if stats is None or stats.source == "unknown":
            return Estimate(None, None)
        mean_s = stats.mean_s + (self._hidden_s() if name == Stage.STEP else 0.0)
        return self._mean(mean_s * self._scale, self._stages.get(name, np.zeros(0)))

    def _hidden_s(self) -> float:
        """Return the mean part of a wait in which the accelerator was busy; 0 where none is
        observed."""
        profile = self._profile
        wait = profile.stages.get(str(Stage.WAIT))
        if profile.device is None or wait is None:
            return 0.0
        stall_s = profile.stall_s - profile.blame.get(OTHER_LOADERS, 0.0)
        return max(0.0, wait.mean_s - stall_s / max(profile.measured_batches, 1))

    def _widen(self, value: float, interval: Interval, column: Floats) -> Interval:
        """Widen the interval of the whole run, if all of its batches were kept."""
        if not LEAST_BATCHES_FOR_VERDICT <= self._profile.measured_batches <= self.kept_batches:
            return interval
        half = _half_width_by_parts(column, self._cycle_s)
        return min(interval[0], value - half), max(interval[1], value + half)

    def _mean(self, mean_s: float, seconds: Floats) -> Estimate:
        """Return the mean of the whole run, with an interval from the kept batches."""
        known = np.isfinite(seconds)
        if known.sum() < LEAST_BATCHES_FOR_VERDICT:
            return Estimate(mean_s, None)
        with np.errstate(all="ignore"):  # figures of a file may overflow
            values, counts = np.where(known, seconds, 0.0) * self._scale, known.astype(np.float64)
            kept = float(values.sum() / counts.sum())
            low, high = ratio_interval(values, counts)
            half = _half_width_by_parts(values, counts)
        interval = mean_s - max(kept - low, half), mean_s + max(high - kept, half)
        return Estimate(mean_s, interval if all(map(math.isfinite, interval)) else None)


def _half_width_by_parts(values: Floats, weights: Floats) -> float:
    """Return half of the 95 % interval of ``sum(values) / sum(weights)``; 0 where it is unknown.
    Parts of the run are taken as independent."""
    with np.errstate(all="ignore"):
        parts = zip(np.array_split(values, PARTS), np.array_split(weights, PARTS), strict=True)
        ratios = np.array([value.sum() / weight.sum() for value, weight in parts])
        half = standard_error(ratios) * student_t(PARTS - 1)
    return half if math.isfinite(half) else 0.0


def _steady(profile: Profile) -> Columns:
    """Return the kept batches without warm-up; none where the log's columns do not fit."""
    log = profile.batches
    if not {len(column) for column in vars(log).values()} <= {0, len(log.index)}:
        return Columns.of(BatchLog())
    columns = Columns.of(log)
    if not (log.nth and log.epoch_batches):
        return columns
    epochs = 1 + max(log.epoch, default=0)
    return columns.take(steady(columns, -(-profile.warmup_batches // max(epochs, 1))))
