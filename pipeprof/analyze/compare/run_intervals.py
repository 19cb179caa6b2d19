"""A run's figures with their intervals, from the batches that its profile still holds.

The bootstrap of `profile.intervals` allows for what neighbouring batches have in common. It does
not allow for what lasts longer, such as another process that had a core for a second. That shows in
parts of the run, which then differ by more: the wider of the two intervals is taken.
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
from pipeprof.analyze.thresholds import LEAST_BATCHES_FOR_VERDICT
from pipeprof.model import BatchLog, Profile, Throughput

STRETCHES: Final = 10
Interval = tuple[float, float]


@dataclass(frozen=True)
class Estimate:
    value: float | None
    """``None``: unknown."""
    interval: Interval | None
    """95 %. ``None``: too few batches to tell."""


class Spans:
    """Of one run; ``scale`` turns seconds of a batch into those that are compared."""

    def __init__(self, profile: Profile, scale: float) -> None:
        self._profile, self._scale = profile, scale
        columns = _steady(profile)
        self.kept_batches = len(columns)
        self._stages = {str(name): seconds for name, seconds in stage_seconds(columns).items()}
        self._samples = columns.samples
        self._stall_s, self._turn_s = columns.stall_s, columns.cycle_s

    @property
    def drift(self) -> Drift | None:
        """``None``: too few batches were kept to tell."""
        return Drift.of(self._turn_s)

    @property
    def turn_s(self) -> float:
        """Of the training loop."""
        profile = self._profile
        return profile.wall_s / max(profile.measured_batches, 1) * self._scale

    def throughput(self) -> Throughput:
        rates = self._profile.throughput
        interval = self._whole(rates.samples_per_s, rates.interval, self._samples)
        return replace(rates, interval=interval)

    def starved(self) -> Estimate:
        """The fraction of the time."""
        told = self._profile.diagnosis
        value = told.starved_fraction
        if self._profile.measured_batches < LEAST_BATCHES_FOR_VERDICT:
            return Estimate(value, None)
        return Estimate(value, self._whole(value, told.starved_interval, self._stall_s))

    def stall(self) -> Estimate:
        profile = self._profile
        mean_s = profile.stall_s / max(profile.measured_batches, 1) * self._scale
        return self._mean(mean_s, self._stall_s)

    def stage(self, name: str) -> Estimate:
        stats = self._profile.stages.get(name)
        if stats is None or stats.source == "unknown":
            return Estimate(None, None)
        return self._mean(stats.mean_s * self._scale, self._stages.get(name, np.zeros(0)))

    def _whole(self, value: float, interval: Interval, of: Floats) -> Interval:
        """``interval`` is of the whole run, and so may say more than the batches kept."""
        if not LEAST_BATCHES_FOR_VERDICT <= self._profile.measured_batches <= self.kept_batches:
            return interval
        half = _by_stretches(of, self._turn_s)
        return min(interval[0], value - half), max(interval[1], value + half)

    def _mean(self, mean_s: float, seconds: Floats) -> Estimate:
        """``mean_s`` is of the whole run; how sure it is, is told by the batches kept."""
        seen = np.isfinite(seconds)
        if seen.sum() < LEAST_BATCHES_FOR_VERDICT:
            return Estimate(mean_s, None)
        with np.errstate(all="ignore"):  # figures in a file may be as large as they like
            values, counts = np.where(seen, seconds, 0.0) * self._scale, seen.astype(np.float64)
            kept = float(values.sum() / counts.sum())
            low, high = ratio_interval(values, counts)
            half = _by_stretches(values, counts)
        interval = mean_s - max(kept - low, half), mean_s + max(high - kept, half)
        return Estimate(mean_s, interval if all(map(math.isfinite, interval)) else None)


def _by_stretches(top: Floats, bottom: Floats) -> float:
    """Half of a 95 % interval of ``sum(top) / sum(bottom)``, by stretches of the run, taken for
    independent; 0 where they tell nothing."""
    with np.errstate(all="ignore"):
        parts = zip(np.array_split(top, STRETCHES), np.array_split(bottom, STRETCHES), strict=True)
        ratios = np.array([part.sum() / below.sum() for part, below in parts])
        half = standard_error(ratios) * student_t(STRETCHES - 1)
    return half if math.isfinite(half) else 0.0


def _steady(profile: Profile) -> Columns:
    """The batches kept, without the warm-up of each epoch; none where the log is not sound."""
    log = profile.batches
    if not {len(column) for column in vars(log).values()} <= {0, len(log.index)}:
        return Columns.of(BatchLog())
    columns = Columns.of(log)
    if not (log.nth and log.epoch_batches):
        return columns
    epochs = 1 + max(log.epoch, default=0)
    return columns.take(steady(columns, -(-profile.warmup_batches // max(epochs, 1))))
