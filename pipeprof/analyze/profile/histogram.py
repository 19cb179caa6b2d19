"""Keep totals, quantiles and a series of an endless stream of values in bounded memory."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from pipeprof.analyze.profile.batch_table import Floats
from pipeprof.analyze.profile.intervals import quantile_places
from pipeprof.model import Source, StageStats

_MOST_EXACT = 4096
"""Most values that are kept as they are. Of more, only the number in each bin is kept."""
_SHIFT = 46
"""Bits of a double that are not part of its bin. The other 18 are its sign, its exponent and 6 bits
of its fraction. A bin's width is at most 1/64 of its values, so that any quantile is within 1 % of
a value of its rank."""
_SMALLEST = 1e-9
"""Smallest value with a bin of its own."""


class Sketch:
    """Count, sum and quantiles of non-negative values, without NaN."""

    def __init__(self) -> None:
        self.count = 0
        self.total = 0.0
        self._values: list[Floats] = []
        self._bins: dict[int, int] = {}

    def add(self, values: Floats) -> None:
        """Add ``values``, of which NaN is left out."""
        known = values[~np.isnan(values)]
        if not len(known):
            return
        self.count += len(known)
        self.total += float(known.sum())
        self._values.append(known)
        if self.count > _MOST_EXACT:
            self._collapse()

    @property
    def mean(self) -> float:
        """The mean of all values; NaN when there are none."""
        return self.total / self.count if self.count else float("nan")

    def quantiles(self, *shares: float) -> tuple[float, ...]:
        """Return the values below which ``shares`` of all lie; NaN when there are none."""
        if not self.count:
            return (float("nan"),) * len(shares)
        if not self._bins:
            return tuple(map(float, np.quantile(np.concatenate(self._values), shares)))
        bins = np.array(sorted(self._bins))
        places = quantile_places([self._bins[number] for number in bins], *shares)
        middles = ((2 * bins[places] + 1) << (_SHIFT - 1)).view(np.float64)
        return tuple(middles.tolist())

    def total_above(self, bound: float) -> float:
        """Return the sum of the values above ``bound``; that of bins by their middles."""
        if not self._bins:
            return float(sum(each[each > bound].sum() for each in self._values))
        numbers = np.array([*self._bins])
        middles = ((2 * numbers + 1) << (_SHIFT - 1)).view(np.float64)
        counts = np.array([*self._bins.values()])
        return float((middles * counts)[middles > bound].sum())

    def stats(self, source: Source, moved: float = 0, requests: float = 0) -> StageStats:
        """Return the figures of a stage whose seconds were added, with the bytes it ``moved``."""
        p50, p95, p99 = self.quantiles(0.50, 0.95, 0.99)
        return StageStats(
            count=self.count,
            mean_s=self.mean,
            p50_s=p50,
            p95_s=p95,
            p99_s=p99,
            total_s=self.total,
            bytes=int(moved),
            requests=int(requests),
            source=source,
        )

    def _collapse(self) -> None:
        """Count the values by bin, and forget them."""
        values = np.maximum(np.concatenate(self._values), _SMALLEST)
        numbers = values.view(np.int64) >> _SHIFT
        first = int(numbers.min())
        counts = np.bincount(numbers - first)
        for place in np.flatnonzero(counts).tolist():
            number = first + place
            self._bins[number] = self._bins.get(number, 0) + int(counts[place])
        self._values.clear()


_MOST_POINTS = 16_384


@dataclass
class Series:
    """Sums over consecutive stretches of a run.

    A stretch is a single batch at first. When there are too many, pairs of stretches are joined.
    """

    names: tuple[str, ...]
    points: list[Floats] = field(default_factory=list)
    """Arrays of consecutive sums. [names, stretches]"""
    stretch: int = 1
    """Batches of a stretch, a power of two."""
    _remainder: Floats | None = None
    """Batches that do not yet fill a stretch. [names, batches]"""

    def add(self, *columns: Floats) -> None:
        """Add the next batches, in a column for each of ``names``."""
        rows = np.stack(columns)
        if self._remainder is not None:
            rows = np.concatenate([self._remainder, rows], axis=1)
        whole = rows.shape[1] // self.stretch * self.stretch
        self._remainder = rows[:, whole:].copy()
        if whole:
            sums = rows[:, :whole]
            for _ in range(self.stretch.bit_length() - 1):
                sums = _pair_sums(sums)
            self.points.append(sums)
        while sum(each.shape[1] for each in self.points) > _MOST_POINTS:
            self._join_pairs()

    def __getitem__(self, name: str) -> Floats:
        """Return the sums of ``name``. [stretches]"""
        if not self.points:
            return np.zeros(0)
        place = self.names.index(name)
        return np.concatenate([each[place] for each in self.points])

    def _join_pairs(self) -> None:
        """Double the length of the stretches."""
        points = np.concatenate(self.points, axis=1)
        even = points.shape[1] // 2 * 2
        if even < points.shape[1] and self._remainder is not None:
            # the last stretch, summed already, becomes the first row of the next one
            self._remainder = np.concatenate([points[:, even:], self._remainder], axis=1)
        self.points = [_pair_sums(points[:, :even])]
        self.stretch *= 2


def _pair_sums(columns: Floats) -> Floats:
    """Return the sums of neighbours, of which there is an even number. [names, half of them]"""
    sums: Floats = columns[:, 0::2] + columns[:, 1::2]
    return sums
