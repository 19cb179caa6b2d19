"""Estimate how much runs of one setting differ, and widen the intervals of trials by it.

There are two sources. The drift of trials while they are measured (`profile.drift`) has many
figures, but covers only seconds. A trial that is repeated later covers minutes, but gives a single
degree of freedom. The first is the prior of the second. The variance between runs has a scaled
inverse chi-square distribution around the drift, with `_PRIOR_DEGREES` degrees of freedom. Each
repetition adds one degree (Gelman et al., "Bayesian Data Analysis", 3rd ed., 2.6). Smyth 2004
moderates variances of few figures in the same manner. Intervals are Student's with these degrees:

    variance = (prior × (least² + mean drift²) + Σ max(0, difference² / 2 − passing)) / degrees
    half width of the difference of two runs = t(degrees) × √(2 × variance)

*Passing* is the chance difference of batches, which the intervals of the runs already contain.
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

_PRIOR_DEGREES: Final = 2
"""Degrees of freedom of the prior. In draws from 25 times eight runs on a shared machine, 94.5 % of
the 95 % intervals contained the next run. With 4 degrees 92 % did. With 1 degree 96 % did, with
intervals a quarter wider."""
_LEAST_DEVIATION: Final = 0.011
"""Least standard deviation of a log rate. Runs of the steadiest loaders differ by 3 % (95 %)."""
_NORMAL: Final = 1.96
_LEAST_TRIALS: Final = 2
"""Trials of a data set that are needed to repeat one, so that some time passes in between."""
Interval = tuple[float, float]


@dataclass(frozen=True)
class Noise:
    """The difference between runs of one setting, without the chance of their batches."""

    variance: float
    """Variance of the log rate of a run."""
    degrees: int
    """Degrees of freedom."""

    @classmethod
    def of(
        cls, drifts: Sequence[float | None], repeated: Sequence[tuple[float, float]] = ()
    ) -> Noise:
        """Estimate the noise from the standard deviation of each run's drift, ``None`` if unknown.
        ``repeated`` has, for each repetition, the log ratio of both runs and the variance of one
        run by the chance of its batches."""
        known = [each**2 for each in drifts if each is not None]
        prior = _LEAST_DEVIATION**2 + (sum(known) / len(known) if known else 0.0)
        measured = sum(max(0.0, log_ratio**2 / 2 - passing) for log_ratio, passing in repeated)
        degrees = _PRIOR_DEGREES + len(repeated)
        return cls((_PRIOR_DEGREES * prior + measured) / degrees, degrees)

    @property
    def half_width(self) -> float:
        """Half of the 95 % interval of the log ratio of two runs."""
        return student_t(self.degrees) * math.sqrt(2 * self.variance)

    def widen(
        self, rate: float, interval: Interval, runs: float = 2.0, confidence: float = _NORMAL
    ) -> Interval:
        """Return the interval of the next run's rate, from ``rate`` and its ``interval``. ``runs``
        contribute the chance of their batches, including the next one. ``confidence`` is that of
        ``interval``, in standard deviations of the normal distribution."""
        if rate <= 0:
            return interval
        low, high = (math.sqrt(runs) * bounded_log(rate, end) for end in interval)
        differ = self.half_width * confidence / _NORMAL
        return (rate * math.exp(-math.hypot(low, differ)),
                rate * math.exp(math.hypot(high, differ)))  # fmt: skip


def noise_of(trials: Sequence[Trial], found: RunNoise | None) -> Noise:
    """Estimate the noise of one data set's trials; ``found`` is a repetition, if one has run."""
    drifts = [trial.drift for trial in trials]
    if found is None or min(found.first_samples_per_s, found.samples_per_s) <= 0:
        return Noise.of(drifts)
    ratio = math.log(found.samples_per_s / found.first_samples_per_s)
    return Noise.of(drifts, [(ratio, _passing(trials))])


def to_repeat(trials: Sequence[Trial], url: str) -> int | None:
    """Return the trial of a data set to repeat when all have run; ``None`` for too few trials. It
    is the fastest of the earlier half: similar to the best setting, and some time ago."""
    own = [index for index, trial in enumerate(trials) if trial.url == url]
    if len(own) < _LEAST_TRIALS:
        return None
    return max(own[: -(-len(own) // 2)], key=lambda index: trials[index].samples_per_s)


def repeated(trials: Sequence[Trial], index: int, samples_per_s: float, trial_s: float) -> RunNoise:
    """Evaluate a repetition of the trial at ``index``, which gave ``samples_per_s``. ``trial_s`` is
    the length of a trial. If it is too short to decide between the best settings, the result has
    the length that would do."""
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
    """Return the trials, with the intervals of this data set widened to those of the next run."""
    return tuple(_widened(trial, noise) if trial.url == url else trial for trial in trials)


def _widened(trial: Trial, noise: Noise) -> Trial:
    own = own_interval(trial)
    return replace(trial, interval=noise.widen(trial.samples_per_s, own), own_interval=own)


def _apart(trials: Sequence[Trial], url: str) -> float | None:
    """Return the log ratio of the best setting to the nearest one; ``None`` if there is only one.
    It is at least the smallest difference that matters."""
    own = [index for index, trial in enumerate(trials) if trial.url == url]
    best = best_trial(trials, own)
    others = [each for each in candidates(trials, own) if each != best]
    if not others or trials[best].samples_per_s <= 0:
        return None
    nearest = min(abs(bounded_log(trials[best].samples_per_s, trials[each].samples_per_s))
                  for each in others)  # fmt: skip
    return max(nearest, math.log1p(EQUALLY_FAST))


def _passing(trials: Sequence[Trial]) -> float:
    """Return the mean variance of a run's log rate by the chance of its batches."""
    known = [
        (bounded_log(*own_interval(trial)) / (2 * _NORMAL)) ** 2
        for trial in trials
        if own_interval(trial)[0] > 0
    ]
    return sum(known) / len(known) if known else 0.0
