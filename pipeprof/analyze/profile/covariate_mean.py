"""Estimate the mean of a figure that is known of a few batches, by another one known of all."""

from __future__ import annotations

from math import nan

import numpy as np

from pipeprof.analyze.profile.batch_table import Floats

_LEAST_FOR_SLOPE = 3
"""With fewer values, the figure is taken to be in proportion to the other one."""


class CovariateMean:
    """The mean of ``y``, known of the batches that were sampled, given the mean of ``x`` of all.

    Sampled batches may take longer than others do: they are few, some of them are the first, and
    sampling itself takes time. The regression estimator corrects for that, as far as ``y`` follows
    ``x`` (W. Cochran, Sampling Techniques, chapter 7).

    Examples:
        >>> mean = CovariateMean()
        >>> mean.add(np.array([4.0]), np.array([5.0]))
        >>> mean.at(2.5)
        2.0
    """

    def __init__(self) -> None:
        self._count = 0
        self._sums = np.zeros(4)
        """Of y, x, x·y and x²."""

    def add(self, y: Floats, x: Floats) -> None:
        """Add batches; those with NaN in either are left out. Both are [batches]."""
        known = np.isfinite(y) & np.isfinite(x)
        y, x = y[known], x[known]
        self._count += len(y)
        self._sums += y.sum(), x.sum(), (x * y).sum(), (x * x).sum()

    def at(self, mean_x: float) -> float:
        """Return the mean of ``y`` where that of ``x`` is ``mean_x``; NaN without values."""
        if not self._count:
            return nan
        y, x, xy, xx = self._sums / self._count
        if not x > 0 or not np.isfinite(mean_x):
            return float(y)
        slope, variance = y / x, xx - x * x
        if self._count >= _LEAST_FOR_SLOPE and variance > 1e-12 * xx:
            # y grows with x, and nothing computes on more cores than the whole does on average
            slope = min(max(0.0, (xy - x * y) / variance), max(1.0, slope))
        return float(max(0.0, y + slope * (mean_x - x)))
