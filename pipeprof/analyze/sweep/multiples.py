"""Compare data sets of a sweep with the first of them, each at its best setting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pipeprof.analyze.compare.ratios import difference, ratio
from pipeprof.model import Multiple, SweepAdvice, Trial


def with_multiples(
    advice: Sequence[SweepAdvice], trials: Sequence[Trial], noise: Mapping[str, float]
) -> tuple[SweepAdvice, ...]:
    """Return ``advice`` with the speed of each data set as a multiple of the first one's.

    ``noise`` has, by URL, half the 95 % interval of the log ratio of two runs of one setting. The
    larger one of the two data sets widens the interval.
    """
    if len(advice) < 2:
        return tuple(advice)
    first, *others = advice
    return (
        first,
        *(replace(each, against_first=_multiple(each, first, trials, noise)) for each in others),
    )


def _multiple(
    one: SweepAdvice, first: SweepAdvice, trials: Sequence[Trial], noise: Mapping[str, float]
) -> Multiple:
    trial, base = trials[one.best_trial], trials[first.best_trial]
    speed, interval = ratio(trial, base, max(noise[one.url], noise[first.url]))
    cpu, base_cpu = trial.cpu_s_per_sample, base.cpu_s_per_sample
    return Multiple(
        speed=speed,
        interval=interval,
        difference=difference(speed, interval),
        cpu=cpu / base_cpu if cpu is not None and base_cpu else None,
    )
