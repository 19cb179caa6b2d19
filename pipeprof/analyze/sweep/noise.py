"""How much one run of a sweep differs from the next in the same setting, and what that widens.

Two things tell. How far trials drift while they are measured (`profile.drift`) says it
with many figures, but of seconds only; a trial that was run again, some time later, says it of
minutes, but with a single degree of freedom. The first is the prior of the second: the variance
between runs has a scaled inverse chi-square distribution about what trials drift by, as sure as
`_PRIOR` degrees of freedom make it, and each repetition adds one (Gelman et al., "Bayesian Data
Analysis", 3rd ed., 2.6; Smyth 2004 moderates variances of few figures so). Intervals are Student's
with all these degrees:

    variance = (prior × (least² + mean drift²) + Σ max(0, difference² / 2 − passing)) / degrees
    half width of what two runs differ by = t(degrees) × √(2 × variance)

*Passing* is what the batches of the two differ by by chance, which their own intervals hold.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from pipeprof.analyze.compare.ratios import bounded_log, own_interval
from pipeprof.analyze.profile.intervals import student_t
from pipeprof.analyze.sweep.recommend import best_trial, candidates
from pipeprof.analyze.thresholds import EQUALLY_FAST
from pipeprof.model import RunNoise, Trial

_PRIOR: Final = 2
"""Degrees of freedom. With so many, 95 % intervals of a next run held in 94.5 % of draws from 25
times eight runs on a shared machine; with 4 in 92 %, with 1 in 96 %, and were a quarter wider."""
_LEAST: Final = 0.011
"""One standard deviation. Two runs of the steadiest loaders differ by 3 % (95 %)."""
_NORMAL: Final = 1.96
FEWEST: Final = 2
"""Trials of a data set of which one is repeated: of a single one nothing lies between the two."""
Interval = tuple[float, float]


@dataclass(frozen=True)
class Noise:
    """Between runs; what batches differ by by chance aside."""

    variance: float
    """Of the log rate of a run."""
    degrees: int
    """Of freedom."""

    @classmethod
    def of(
        cls, drifts: Sequence[float | None], repeated: Sequence[tuple[float, float]] = ()
    ) -> Noise:
        """``drifts``: of each run its standard deviation. ``repeated``: the log ratio of two runs
        of one setting, and the variance of what passes in one such run."""
        known = [each**2 for each in drifts if each is not None]
        expected = _LEAST**2 + (sum(known) / len(known) if known else 0.0)
        found = sum(max(0.0, log_ratio**2 / 2 - passing) for log_ratio, passing in repeated)
        degrees = _PRIOR + len(repeated)
        return cls((_PRIOR * expected + found) / degrees, degrees)

    @property
    def half_width(self) -> float:
        """95 %, of the log of what two runs differ by."""
        return student_t(self.degrees) * math.sqrt(2 * self.variance)

    def widen(
        self, rate: float, interval: Interval, runs: float = 2.0, confidence: float = _NORMAL
    ) -> Interval:
        """Of one next run, where ``interval`` is of the mean that one run, or a prediction, has
        found. ``runs``: so many have the chance of batches, the next among them; ``confidence``:
        in standard deviations of the normal distribution, that of ``interval``."""
        if rate <= 0:
            return interval
        low, high = (math.sqrt(runs) * bounded_log(rate, end) for end in interval)
        differ = self.half_width * confidence / _NORMAL
        return (rate * math.exp(-math.hypot(low, differ)),
                rate * math.exp(math.hypot(high, differ)))  # fmt: skip


def noise_of(trials: Sequence[Trial], found: RunNoise | None) -> Noise:
    """``trials``: of one data set. ``found``: the repetition of one of them, if that has run."""
    drifts = [trial.drift for trial in trials]
    if found is None or min(found.first_samples_per_s, found.samples_per_s) <= 0:
        return Noise.of(drifts)
    ratio = math.log(found.samples_per_s / found.first_samples_per_s)
    return Noise.of(drifts, [(ratio, _passing(trials))])


def to_repeat(trials: Sequence[Trial], url: str) -> int | None:
    """The trial of a data set to be run again, when all have run: of the earlier half the fastest,
    which is like the one that is chosen, and some time ago. ``None``: there are too few."""
    own = [index for index, trial in enumerate(trials) if trial.url == url]
    if len(own) < FEWEST:
        return None
    return max(own[: -(-len(own) // 2)], key=lambda index: trials[index].samples_per_s)


def repeated(trials: Sequence[Trial], index: int, samples_per_s: float, trial_s: float) -> RunNoise:
    """What the trial at ``index``, run again, tells of its data set. ``trial_s``: the length of a
    trial."""
    first = trials[index]
    own = [trial for trial in trials if trial.url == first.url]
    found = RunNoise(index, first.samples_per_s, samples_per_s)
    noise, passing = noise_of(own, found), _passing(own)
    differ = math.hypot(noise.half_width, _NORMAL * math.sqrt(2 * passing))
    apart = _apart(trials, first.url)
    found = replace(
        found, sd=math.sqrt(noise.variance + passing), degrees=noise.degrees, half_width=differ,
        apart=apart,
    )  # fmt: skip
    if apart is None or differ <= apart:
        return found
    room = apart**2 - noise.half_width**2
    needed = trial_s * _NORMAL**2 * 2 * passing / room if room > 0 else None
    return replace(found, settled=False, needed_trial_s=needed)


def widened(trials: Sequence[Trial], url: str, noise: Noise) -> tuple[Trial, ...]:
    """With the intervals of a data set's trials made to hold the next run."""
    return tuple(_widened(trial, noise) if trial.url == url else trial for trial in trials)


def _widened(trial: Trial, noise: Noise) -> Trial:
    own = own_interval(trial)
    return replace(trial, interval=noise.widen(trial.samples_per_s, own), own_interval=own)


def _apart(trials: Sequence[Trial], url: str) -> float | None:
    """By how much, in logarithms, the best setting of a data set and the next differ, or would have
    to for the difference to matter. ``None``: there is but one."""
    own = [index for index, trial in enumerate(trials) if trial.url == url]
    best = best_trial(trials, own)
    others = [each for each in candidates(trials, own) if each != best]
    if not others or trials[best].samples_per_s <= 0:
        return None
    nearest = min(abs(bounded_log(trials[best].samples_per_s, trials[each].samples_per_s))
                  for each in others)  # fmt: skip
    return max(nearest, math.log1p(EQUALLY_FAST))


def _passing(trials: Sequence[Trial]) -> float:
    """Variance of a run's log rate by the chance of its batches: the mean over ``trials``."""
    known = [
        (bounded_log(*own_interval(trial)) / (2 * _NORMAL)) ** 2
        for trial in trials
        if own_interval(trial)[0] > 0
    ]
    return sum(known) / len(known) if known else 0.0
