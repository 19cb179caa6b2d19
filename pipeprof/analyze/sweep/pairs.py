"""Compare the best settings of a sweep by pairs of runs.

A machine that is slower for a while makes one of two equal settings look better. It slows down both
runs of a pair, which follow each other shortly.
"""

from __future__ import annotations

from collections.abc import Sequence

from pipeprof.analyze.compare.ratios import difference, paired_ratio, ratio
from pipeprof.analyze.sweep.recommend import best_trial, candidates
from pipeprof.analyze.thresholds import EQUALLY_FAST
from pipeprof.model import PairedRuns, Trial

DRIFT = 0.10
"""Fraction by which a shared machine is faster in one minute than in another."""


def in_doubt(trials: Sequence[Trial], url: str, drift: float = DRIFT) -> tuple[int, int] | None:
    """Return the best trial of a data set and the fastest other one, if they do not differ.
    ``None`` means that the trials have decided, or that the best one feeds an accelerator so well
    that nothing could be faster by `EQUALLY_FAST`. ``drift`` is half a 95 % interval of the log
    ratio of two runs of one setting."""
    own = [index for index, trial in enumerate(trials) if trial.url == url]
    if not own:
        return None
    best = best_trial(trials, own)
    if trials[best].verdict == "fed" and trials[best].starved_fraction < EQUALLY_FAST:
        return None
    others = [
        index for index in candidates(trials, own)
        if _setting(trials[index]) != _setting(trials[best])
    ]  # fmt: skip
    if not others:
        return None
    next_best = max(others, key=lambda index: trials[index].samples_per_s)
    speed, interval = ratio(trials[best], trials[next_best], drift)
    return (best, next_best) if difference(speed, interval) == "none" else None


def _setting(trial: Trial) -> tuple[int | None, ...]:
    config = trial.config
    return config.num_workers, config.prefetch_factor, config.batch_size


def paired(trial: int, against: int, samples_per_s: Sequence[tuple[float, float]]) -> PairedRuns:
    """Evaluate two or more pairs, by Student's distribution of the mean of their log ratios."""
    speed, interval = paired_ratio(samples_per_s)
    return PairedRuns(
        trial, against, tuple(samples_per_s), speed, interval, difference(speed, interval)
    )
