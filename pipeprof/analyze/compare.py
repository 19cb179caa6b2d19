"""Two settings against each other: by trials some time apart, and by pairs of runs.

A machine that is slower for a while makes of two equal settings one that is better. In pairs, run
by turns, it is slower for both.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np

from pipeprof.analyze.choose import CLOSE, best_trial, candidates
from pipeprof.analyze.stats import standard_error, student_t
from pipeprof.model import PairedRuns, Throughput, Trial

DRIFT = 0.10
"""By so much a machine that others use as well is faster in one minute than in another."""


def in_doubt(trials: Sequence[Trial], url: str, drift: float = DRIFT) -> tuple[int, int] | None:
    """The best setting of a data set by its trials, and the fastest of the others that may be as
    good, if the trials cannot tell the two apart. ``drift``: half a 95 % interval of the log of
    what two runs of one setting differ by."""
    own = [index for index, trial in enumerate(trials) if trial.url == url]
    if not own:
        return None
    best = best_trial(trials, own)
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
    """What at least two pairs tell, by Student's distribution of the mean of their log ratios."""
    ratios = np.array([_log(one, other) for one, other in samples_per_s])
    middle = float(ratios.mean())
    half = student_t(len(ratios) - 1) * standard_error(ratios)
    speed, interval = math.exp(middle), (math.exp(middle - half), math.exp(middle + half))
    return PairedRuns(
        trial, against, tuple(samples_per_s), speed, interval, difference(speed, interval)
    )


def difference(speed: float, interval: tuple[float, float]) -> Literal["faster", "slower", "none"]:
    if abs(speed - 1) < CLOSE or interval[0] <= 1 <= interval[1]:
        return "none"
    return "faster" if speed > 1 else "slower"


def ratio(
    one: Trial | Throughput, other: Trial | Throughput, drift: float
) -> tuple[float, tuple[float, float]]:
    """samples/s of ``one`` as a multiple of the other's, with a 95 % interval.

    Both intervals, and ``drift`` between two measurements of the same thing, are taken for
    independent: their logarithms add up as squares.
    """
    speed = math.exp(log_ratio(one, other))
    (low, high), (other_low, other_high) = _own(one), _own(other)
    down = math.hypot(_log(one.samples_per_s, low), _log(other_high, other.samples_per_s), drift)
    up = math.hypot(_log(high, one.samples_per_s), _log(other.samples_per_s, other_low), drift)
    return speed, (speed * math.exp(-down), speed * math.exp(up))


def _own(run: Trial | Throughput) -> tuple[float, float]:
    """The interval of that very run."""
    return (isinstance(run, Trial) and run.own_interval) or run.interval


def log_ratio(one: Trial | Throughput, other: Trial | Throughput) -> float:
    return _log(one.samples_per_s, other.samples_per_s)


def _log(of: float, base: float) -> float:
    """Bounded: a trial may have delivered next to nothing."""
    return max(-20.0, min(20.0, math.log(max(of, 1e-9) / max(base, 1e-9))))
