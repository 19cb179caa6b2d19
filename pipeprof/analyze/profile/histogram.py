"""Running figures of an endless stream in bounded room: totals, quantiles, a series."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from pipeprof.analyze.profile.batch_table import Floats
from pipeprof.analyze.profile.intervals import quantile_places
from pipeprof.model import Source, StageStats

_EXACT = 4096
"""Up to so many values are kept as they are."""
_SHIFT = 46
"""Beyond that, only how many fall into each bin: the first 18 bits of a double, which are its sign,
its exponent and 6 bits of its fraction. A bin's width is at most 1/64 of its values, so that any
quantile is within 1 % of a value of its rank."""
_SMALLEST = 1e-9


class Sketch:
    """Count, sum and quantiles of non-negative values; NaN is left out."""

    def __init__(self) -> None:
        self.count = 0
        self.total = 0.0
        self._values: list[Floats] = []
        self._bins: dict[int, int] = {}

    def add(self, values: Floats) -> None:
        seen = values[~np.isnan(values)]
        if not len(seen):
            return
        self.count += len(seen)
        self.total += float(seen.sum())
        self._values.append(seen)
        if self.count > _EXACT:
            self._collapse()

    @property
    def mean(self) -> float:
        return self.total / self.count if self.count else float("nan")

    def quantiles(self, *shares: float) -> tuple[float, ...]:
        """The values below which ``shares`` of all lie; NaN when there are none."""
        if not self.count:
            return (float("nan"),) * len(shares)
        if not self._bins:
            return tuple(map(float, np.quantile(np.concatenate(self._values), shares)))
        bins = np.array(sorted(self._bins))
        places = quantile_places([self._bins[number] for number in bins], *shares)
        middles = ((2 * bins[places] + 1) << (_SHIFT - 1)).view(np.float64)
        return tuple(middles.tolist())

    def stats(self, source: Source, moved: float = 0, requests: float = 0) -> StageStats:
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
    """Sums over consecutive stretches of a run: single batches at first; when there are too many,
    pairs of stretches are joined."""

    names: tuple[str, ...]
    points: list[Floats] = field(default_factory=list)
    """Each [stretches, names]."""
    stretch: int = 1
    """Batches that a point stands for."""
    _rest: Floats | None = None
    """Batches that do not yet fill a stretch."""

    def add(self, *columns: Floats) -> None:
        fresh = np.stack(columns, axis=1)
        if self._rest is not None:
            fresh = np.concatenate([self._rest, fresh])
        whole = len(fresh) // self.stretch * self.stretch
        self._rest = fresh[whole:]
        if whole:
            parts = fresh[:whole].reshape(-1, self.stretch, len(self.names))
            self.points.append(parts.sum(axis=1))
        while sum(map(len, self.points)) > _MOST_POINTS:
            self._join_pairs()

    def __getitem__(self, name: str) -> Floats:
        if not self.points:
            return np.zeros(0)
        column: Floats = np.concatenate(self.points)[:, self.names.index(name)]
        return column

    def _join_pairs(self) -> None:
        whole = np.concatenate(self.points)
        even = len(whole) // 2 * 2
        if even < len(whole) and self._rest is not None:
            # summed already, it stands at the start of the next stretch, which is longer by it
            self._rest = np.concatenate([whole[even:], self._rest])
        self.points = [whole[:even].reshape(-1, 2, len(self.names)).sum(axis=1)]
        self.stretch *= 2
