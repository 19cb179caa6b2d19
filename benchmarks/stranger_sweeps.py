"""What a guided sweep of a stranger tries, predicts and chooses, from runs of all its settings.

A stranger is a loader drawn at random. A sweep requests one setting after another as `pipeprof
sweep` does, and receives that setting's run of the first bout. At the end it repeats one of them,
and receives that of the second bout, by which its intervals are widened.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import log
from typing import Any

import numpy as np

from benchmarks.random_loader_runs import steady_part
from benchmarks.random_loaders import LoaderSpec
from pipeprof.analyze.compare.ratios import bounded_log
from pipeprof.analyze.predict.workload import Measured, Setting
from pipeprof.analyze.profile.drift import drift_of
from pipeprof.analyze.profile.intervals import ratio_interval
from pipeprof.analyze.sweep.noise import Noise
from pipeprof.analyze.sweep.outlooks import Outlook
from pipeprof.analyze.sweep.pairs import paired
from pipeprof.analyze.sweep.recommend import is_decided, preferred
from pipeprof.analyze.sweep.search import plan
from pipeprof.analyze.thresholds import EQUALLY_FAST
from pipeprof.model import MOST_HALF_WIDTH, PairedRuns, Recording, SweepSpec
from pipeprof.sweep.pairs import pair_count

STARVED = 0.05
"""Starved fraction from which a setting counts."""
SPEC = SweepSpec(urls=(), workers=(), prefetch=(), batch_sizes=(), step_s=None)
"""Spec of a sweep that, by default, decides its choice by pairs of runs."""
_DOUBT = 0.2
"""Relative difference of rates below which a sweep's trials do not distinguish two settings."""

_NORMAL = 1.96
"""Standard deviations on either side of the mean in an interval of 95 %."""

Rates = tuple[tuple[float, float], ...]
Pair = tuple[Setting, Setting]
"""Two settings that were run alternately."""


@dataclass(frozen=True)
class Stranger:
    """A loader's runs in all settings of the grid."""

    spec: LoaderSpec
    bouts: tuple[Mapping[Setting, Recording], ...]
    pairs: Mapping[Pair, Rates]
    """Batches/s of alternating runs, by which the sweep decides between two settings."""
    others: float | None = None
    """Share of all cores, 0..1, that other processes used during the runs."""
    judging: Mapping[Pair, Rates] = field(default_factory=dict)
    """Batches/s of further ones, by which the choice is compared with the best setting."""

    def __reduce__(self) -> Any:
        return Stranger, (
            self.spec,
            self.bouts,
            self.pairs,
            self.others,
            self.judging,
        )  # without what is derived from these

    @cached_property
    def runs(self) -> dict[Setting, list[Measured]]:
        """Runs of each setting, one per bout, with the order and the pinning of the loader."""
        runs = {}
        for each in self.bouts[0]:
            setting = replace(each, in_order=self.spec.in_order, pin_memory=self.spec.pins)
            runs[setting] = [
                replace(steady_part(bout[each]), setting=setting) for bout in self.bouts
            ]
        return runs

    def rates(self, setting: Setting) -> list[float]:
        return [run.batches_per_s for run in self.runs[setting]]

    def starved(self, setting: Setting) -> float:
        """Return the share of the time in which the training waited for a batch."""
        runs = self.runs[setting]
        return float(np.mean([run.columns.wait_s.sum() / run.seconds for run in runs]))

    @property
    def best(self) -> Setting:
        """The setting with the highest mean rate over all runs."""
        return max(self.runs, key=lambda setting: float(np.mean(self.rates(setting))))

    @property
    def spread(self) -> float:
        """Relative standard deviation of one run's rate; NaN where none was run twice."""
        logs = np.log([self.rates(setting) for setting in self.runs])
        return float(np.sqrt(logs.var(axis=1, ddof=1).mean()))


@dataclass(frozen=True)
class Behind:
    """How much faster the best setting is than the choice."""

    share: float
    """By the geometric mean of the pairs' ratios: 0.02 means 2 % faster."""
    interval: tuple[float, float]
    """95 % interval of ``share``."""
    pairs: int | None
    """Number of pairs that were run for it; ``None`` where the best is chosen."""


@dataclass(frozen=True)
class Sweep:
    """What a guided sweep of a stranger tried and reported."""

    stranger: Stranger
    tried: tuple[Measured, ...]
    outlooks: tuple[Outlook, ...]
    """Predictions of the settings that it left untried."""

    @classmethod
    def of(cls, stranger: Stranger, cores: float) -> Sweep:
        tried: list[Measured] = []
        while True:
            told = plan(list(stranger.runs), tried, cores)
            if told.trial is None:
                noise = _noise(stranger, tried)
                told = plan(list(stranger.runs), tried, cores, noise)
                return cls(stranger, tuple(tried), told.outlooks)
            tried.append(stranger.runs[told.trial][0])

    @property
    def first_choice(self) -> Setting:
        """The choice by trials alone: the cheapest of those within 3 % of the fastest."""
        near = max(run.batches_per_s for run in self.tried) * (1 - EQUALLY_FAST)
        return min((run.setting for run in self.tried if run.batches_per_s >= near), key=cost)

    @property
    def doubt(self) -> Pair | None:
        """The first choice and the fastest other setting tried, if that one may be as good."""
        first = self.first_choice
        others = [run for run in self.tried if run.setting != first]
        if not others:
            return None
        rival = max(others, key=lambda run: run.batches_per_s)
        rate = max(run.batches_per_s for run in self.tried if run.setting == first)
        return (first, rival.setting) if rival.batches_per_s > rate * (1 - _DOUBT) else None

    @property
    def chosen(self) -> Setting:
        """The first choice, or its rival where pairs of runs favour that."""
        rates = self.stranger.pairs.get(self.doubt) if self.doubt else None
        if self.doubt is None or not rates:
            return self.first_choice
        return self.doubt[preferred(paired(0, 1, rates), self._cheaper)]

    @property
    def pairs(self) -> int:
        """Number of pairs that the sweep may run to decide its choice."""
        return pair_count(SPEC, len(self.tried)) if self.doubt else 0

    def decided(self, found: PairedRuns) -> bool:
        """Whether pairs of `doubt` have decided the choice."""
        return is_decided(found, self._cheaper)

    @property
    def _cheaper(self) -> int:
        """The index of the cheaper setting of `doubt`."""
        return min((0, 1), key=lambda index: cost((self.doubt or ())[index]))

    @property
    def judged(self) -> Pair:
        """The choice, and the setting that is fastest over all runs."""
        return self.chosen, self.stranger.best

    def behind(self) -> Behind:
        """Return by how much the best is faster than the choice, by pairs of runs or, where none
        were run, by the bouts."""
        chosen, best = self.judged
        if chosen == best:
            return Behind(0.0, (0.0, 0.0), None)
        bouts = list(zip(self.stranger.rates(chosen), self.stranger.rates(best), strict=True))
        rates = self.stranger.judging.get((chosen, best), ())
        found = paired(1, 0, [each[::-1] for each in rates or bouts])
        low, high = found.speed_interval
        return Behind(found.speed - 1, (low - 1, high - 1), len(rates))

    def cells(self) -> list[Cell]:
        """Return the settings that were left untried and in which training is starved."""
        return [
            _cell(self.stranger, told) for told in self.outlooks
            if self.stranger.starved(told.setting) >= STARVED
        ]  # fmt: skip


@dataclass(frozen=True)
class Cell:
    """A setting that the sweep left untried, with its prediction and its runs."""

    setting: Setting
    batches_per_s: float
    """Predicted rate."""
    most: float
    interval: tuple[float, float]
    """90 % interval of the rate of a run that is as long."""
    rates: tuple[float, ...]
    noise: float
    """What runs of one setting of this stranger differ by: relative standard deviation."""

    @property
    def has_number(self) -> bool:
        """Whether the report gives a number, and not a range alone."""
        low, high = self.interval
        return high - low <= 2 * MOST_HALF_WIDTH * self.batches_per_s

    @property
    def error(self) -> float:
        return self.batches_per_s / float(np.mean(self.rates)) - 1

    @property
    def errors_of_runs(self) -> list[float]:
        """The error if a run of this setting had been tried, in the place of the prediction. Each
        run is compared with the mean of the others."""
        total, count = sum(self.rates), len(self.rates)
        return [each * (count - 1) / (total - each) - 1 for each in self.rates]

    @property
    def held(self) -> float:
        """Share of the runs in the interval."""
        return float(np.mean([self.interval[0] <= each <= self.interval[1] for each in self.rates]))

    @property
    def most_held(self) -> float:
        """Share of the runs that were no faster than ``most``."""
        return float(np.mean([each <= self.most for each in self.rates]))


def _noise(stranger: Stranger, tried: Sequence[Measured]) -> Noise:
    """Return what a sweep estimates that runs differ by, after it has repeated one of its trials:
    the fastest of the earlier half."""
    earlier = tried[: -(-len(tried) // 2)]
    rates = stranger.rates(max(earlier, key=lambda run: run.batches_per_s).setting)
    chance = np.mean([_variance_by_chance(run) for run in tried])
    repeated = [(log(rates[1] / rates[0]), float(chance))] if len(rates) > 1 else []
    return Noise.of([drift_of(run.columns) for run in tried], repeated)


def _variance_by_chance(run: Measured) -> float:
    """Return the variance of a run's log rate by the chance of its batches."""
    cycle_s = run.columns.cycle_s
    low, high = ratio_interval(np.ones_like(cycle_s), cycle_s)
    return (bounded_log(high, low) / (2 * _NORMAL)) ** 2


def _cell(stranger: Stranger, told: Outlook) -> Cell:
    """Return the cell as `pipeprof sweep` reports it: *at most* is the interval's upper end."""
    rates = tuple(stranger.rates(told.setting))
    return Cell(
        told.setting, told.batches_per_s, told.interval[1], told.interval, rates, stranger.spread
    )


def cost(setting: Setting) -> tuple[int, int]:
    """Return what a sweep compares to choose the cheapest of the settings that are as fast."""
    return setting.num_workers, setting.prefetch_factor
