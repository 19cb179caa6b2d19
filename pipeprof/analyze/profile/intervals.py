"""Compute intervals that hold for bursty, correlated batches, and other statistics of samples."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pipeprof.analyze.profile.batch_table import Floats, Rows

_ROUNDS = 1000
_NORMAL = 1.959964
_STUDENT = 12.706205, 4.302653, 3.182446, 2.776445
"""97.5 % quantiles at 1, 2, 3 and 4 degrees of freedom."""
NORMAL_90 = 1.645
"""Standard deviations on either side of the mean that include 90 % of a normal distribution."""


def ratio_interval(top: Floats, bottom: Floats, seed: int = 0) -> tuple[float, float]:
    """Return the 95 % interval of ``sum(top) / sum(bottom)`` by a circular block bootstrap.

    Blocks keep correlated batches together: those after a slow read that serves the next hundred,
    or those of one worker, which are every W-th. The length of a block is the square root of the
    number of batches (Künsch 1989; Politis & Romano 1992). So few blocks give too narrow an
    interval, as the normal quantile does where Student's is due. The interval is therefore widened
    by their ratio. The same input gives the same interval.
    """
    count = len(top)
    if count < 2:
        return (0.0, float("inf")) if count == 0 else (float(top[0] / bottom[0]),) * 2
    length = max(1, round(count**0.5))
    blocks = -(-count // length)
    starts = np.random.default_rng(seed).integers(0, count, size=(_ROUNDS, blocks))
    tops, bottoms = _block_sums(top, length), _block_sums(bottom, length)
    ratios = tops[starts].sum(axis=1) / bottoms[starts].sum(axis=1)
    centre = float(top.sum() / bottom.sum())
    low, high = centre + (np.percentile(ratios, [2.5, 97.5]) - centre) * _small_sample(blocks)
    return float(low), float(high)


def _small_sample(blocks: int) -> float:
    """Return the factor that widens an interval from ``blocks`` observations: Student's 97.5 %
    quantile over the normal one, times the bias of their variance."""
    degrees = max(1, blocks - 1)
    return float(student_t(degrees) / _NORMAL * (blocks / degrees) ** 0.5)


def standard_error(values: Floats) -> float:
    """Return the standard error of the mean of independent ``values``; infinite for fewer than two,
    because it is unknown then."""
    if len(values) < 2:
        return float("inf")
    return float(values.std(ddof=1) / np.sqrt(len(values)))


def student_t(degrees: int) -> float:
    """Return Student's 97.5 % quantile, to 0.0003, by Abramowitz & Stegun 26.7.5 where that
    converges."""
    if degrees <= len(_STUDENT):
        return _STUDENT[degrees - 1]
    x, n = _NORMAL, degrees
    return (
        x
        + (x**3 + x) / (4 * n)
        + (5 * x**5 + 16 * x**3 + 3 * x) / (96 * n**2)
        + (3 * x**7 + 19 * x**5 + 17 * x**3 - 15 * x) / (384 * n**3)
        + (79 * x**9 + 776 * x**7 + 1482 * x**5 - 1920 * x**3 - 945 * x) / (92160 * n**4)
    )


def spread(samples: Floats, seconds: Floats, windows: int = 5) -> float:
    """Return (max - min) / median of the rates of equal parts of the run; 0 if it is too short."""
    if len(samples) < 2 * windows:
        return 0.0
    rates = [
        float(part.sum() / time.sum())
        for part, time in zip(
            np.array_split(samples, windows), np.array_split(seconds, windows), strict=True
        )
    ]
    return (max(rates) - min(rates)) / float(np.median(rates))


def fit_line(x: Floats, y: Floats) -> tuple[float, float]:
    """Return the least-squares slope of ``y`` over ``x``, and their correlation; 0 where one of
    them is constant."""
    variance, deviations = float(np.var(x)), float(np.std(x) * np.std(y))
    covariance = float(np.mean((x - x.mean()) * (y - y.mean())))
    correlation = covariance / deviations if deviations else 0.0
    return covariance / variance if variance else 0.0, correlation


def quantile_places(counts: Sequence[int], *shares: float) -> Rows:
    """Return the bins in which the quantiles at ``shares`` lie; ``counts`` are the bins' values."""
    total = np.cumsum(counts)
    places: Rows = np.searchsorted(total, np.array(shares) * (total[-1] - 1), side="right")
    return places


def _block_sums(values: Floats, length: int) -> Floats:
    """Return the sum of ``length`` values from each position on, continued at the start."""
    circular = np.concatenate([values, values[: length - 1]])
    sums = np.concatenate([[0.0], np.cumsum(circular)])
    block: Floats = sums[length:] - sums[:-length]
    return block
