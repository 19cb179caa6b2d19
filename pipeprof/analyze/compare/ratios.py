"""Compute how many times as fast one measurement is as another, with an interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np

from pipeprof.analyze.profile.intervals import standard_error, student_t
from pipeprof.analyze.thresholds import EQUALLY_FAST
from pipeprof.model import Throughput, Trial

Interval = tuple[float, float]


def difference(speed: float, interval: tuple[float, float]) -> Literal["faster", "slower", "none"]:
    """Classify a ratio of rates; ``"none"`` where it is below `EQUALLY_FAST` or not significant."""
    if abs(speed - 1) < EQUALLY_FAST or interval[0] <= 1 <= interval[1]:
        return "none"
    return "faster" if speed > 1 else "slower"


def ratio(
    one: Trial | Throughput, other: Trial | Throughput, drift: float
) -> tuple[float, tuple[float, float]]:
    """Return the samples/s of ``one`` divided by those of ``other``, with a 95 % interval. Both
    intervals and ``drift``, half a 95 % interval of the log ratio of two equal runs, are taken as
    independent: the squares of their logarithms add up."""
    speed = math.exp(log_ratio(one, other))
    (low, high), (other_low, other_high) = own_interval(one), own_interval(other)
    down = math.hypot(
        bounded_log(one.samples_per_s, low), bounded_log(other_high, other.samples_per_s), drift
    )
    up = math.hypot(
        bounded_log(high, one.samples_per_s), bounded_log(other.samples_per_s, other_low), drift
    )
    return speed, (speed * math.exp(-down), speed * math.exp(up))


def paired_ratio(samples_per_s: Sequence[tuple[float, float]]) -> tuple[float, Interval]:
    """Return how many times as fast the first of each pair is, with a 95 % interval by Student's
    distribution of the mean of the log ratios. There must be two pairs or more."""
    ratios = np.array([bounded_log(one, other) for one, other in samples_per_s])
    center = float(ratios.mean())
    half = student_t(len(ratios) - 1) * standard_error(ratios)
    return math.exp(center), (math.exp(center - half), math.exp(center + half))


def own_interval(run: Trial | Throughput) -> tuple[float, float]:
    """Return the 95 % interval of the samples/s of this one run, by its batches."""
    return (isinstance(run, Trial) and run.own_interval) or run.interval


def log_ratio(one: Trial | Throughput, other: Trial | Throughput) -> float:
    """Return the log of the ratio of samples/s."""
    return bounded_log(one.samples_per_s, other.samples_per_s)


def bounded_log(of: float, base: float) -> float:
    """Return ``log(of / base)`` within ±20, as a trial may deliver next to nothing."""
    return max(-20.0, min(20.0, math.log(max(of, 1e-9) / max(base, 1e-9))))
