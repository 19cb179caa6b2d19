"""Estimate from one run how much runs of the same setting differ without a cause.

The speed of shared machines varies from second to second and from minute to minute. A longer run
does not average this out, as it meets slower changes too. Such noise has the same power in each
octave of frequency (*flicker*: Allan 1966, "Statistics of atomic frequency standards"). The mean of
a run is then as uncertain as that of an eighth of it.

The variance of the eighths' log rates has two parts. Differences between single batches average out
over longer stretches, and lasting ones do not. Thirty-two parts of the run separate the two.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from pipeprof.analyze.profile.batch_table import Columns, Floats
from pipeprof.analyze.profile.intervals import student_t

_PARTS: Final = 8
_SUBDIVISION: Final = 4
"""Number of pieces of each part, which show the differences between single batches."""
_LONG_RUN: Final = 64
"""Fewest batches of a run that is cut into `_PARTS`. A shorter one is cut into half as many."""
DEGREES: Final = 3
"""Degrees of freedom of two runs together. Parts of a run that drifts are far from independent. Of
336 pairs of equal runs on a shared machine, 2 % were reported to differ; with one more, 4 %."""


@dataclass(frozen=True)
class Drift:
    """The variance of a run's log rate, in two parts."""

    lasting: float = 0.0
    """Variance that a longer run does not average out."""
    passing: float = 0.0
    """Variance that falls with the run's length, as batches differ by chance."""

    @classmethod
    def of(cls, cycle_s: Floats) -> Drift | None:
        """Estimate the drift from the cycle times of a run, in their order. Return ``None`` if they
        are too few, or cannot be those of a loop."""
        parts = _PARTS if len(cycle_s) >= _LONG_RUN else _PARTS // 2
        pieces = _SUBDIVISION * parts
        if len(cycle_s) < pieces:
            return None
        coarse, fine = _variance(cycle_s, parts), _variance(cycle_s, pieces)
        if not (math.isfinite(coarse) and math.isfinite(fine)):
            return None
        passing = max(0.0, (fine - coarse) / (pieces - parts))
        return cls(max(0.0, coarse - parts * passing), passing)


def drift_of(columns: Columns) -> float | None:
    """Return the relative standard deviation of the lasting part; ``None`` for too few batches."""
    drift = Drift.of(columns.cycle_s)
    return math.sqrt(drift.lasting) if drift else None


def between(before: Drift | None, after: Drift | None) -> float:
    """Return half of the 95 % interval of the log ratio of two runs' rates, due to drift alone. The
    passing part is left out, as the runs' own intervals include it."""
    lasting = sum(each.lasting for each in (before, after) if each)
    return student_t(DEGREES) * math.sqrt(lasting)


def _variance(cycle_s: Floats, parts: int) -> float:
    """Return the variance of the log rates of ``parts`` equal parts of the run."""
    with np.errstate(all="ignore"):  # a file may have figures of any size
        means = np.array([part.mean() for part in np.array_split(cycle_s, parts)])
        return float(np.log(means).var(ddof=1))
