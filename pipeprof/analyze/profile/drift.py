"""How much two runs of one setting differ without a cause, estimated from one of them.

Machines that others use as well are faster in one second than in another, and in one minute than in
another. What differs between stretches of a run at lags of seconds differs between runs, too: the
longer a run, the slower the changes that it meets, so that it does not average them out. Noise of
that kind has the same power in each octave of frequency (*flicker*: Allan 1966, "Statistics of
atomic frequency standards"), and the mean of a run is as uncertain as that of an eighth of it.

The variance of the eighths' log rates has two parts. What batches differ by among themselves
falls as stretches grow, and what lasts does not: thirty-two parts of the run tell the two apart.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from pipeprof.analyze.profile.batch_table import Columns, Floats
from pipeprof.analyze.profile.intervals import student_t

_PARTS: Final = 8
_FINER: Final = 4
"""Multiple of the parts, which serves to separate what passes."""
_MANY: Final = 64
"""Batches of a run that is cut into so many parts; a shorter one is cut into half as many."""
DEGREES: Final = 3
"""Degrees of freedom of two runs together. Parts of a run that drifts are far from independent:
of 336 pairs of equal runs on a shared machine 2 % were reported to differ with so many, 4 % with
one more."""


@dataclass(frozen=True)
class Drift:
    """Variances of the log rate of a run."""

    lasting: float = 0.0
    """The part that a longer run does not average out."""
    passing: float = 0.0
    """The part that falls with the run's length, as its batches differ by chance."""

    @classmethod
    def of(cls, cycle_s: Floats) -> Drift | None:
        """From the cycle times of a run, in their order. ``None`` if they are too few, or cannot be
        those of a loop."""
        parts = _PARTS if len(cycle_s) >= _MANY else _PARTS // 2
        finer = _FINER * parts
        if len(cycle_s) < finer:
            return None
        coarse, fine = _variance(cycle_s, parts), _variance(cycle_s, finer)
        if not (math.isfinite(coarse) and math.isfinite(fine)):
            return None
        each = max(0.0, (fine - coarse) / (finer - parts))
        return cls(max(0.0, coarse - parts * each), each)


def drift_of(columns: Columns) -> float | None:
    """Relative standard deviation of the part that lasts; ``None`` of too few batches."""
    found = Drift.of(columns.cycle_s)
    return math.sqrt(found.lasting) if found else None


def between(before: Drift | None, after: Drift | None) -> float:
    """Half of a 95 % interval of the log of what two such runs differ by as the machine drifts.
    What passes is left out, as the runs' own intervals include it."""
    lasting = sum(each.lasting for each in (before, after) if each)
    return student_t(DEGREES) * math.sqrt(lasting)


def _variance(cycle_s: Floats, parts: int) -> float:
    """Variance of the log rates of so many parts."""
    with np.errstate(all="ignore"):  # figures in a file may be as large as they like
        means = np.array([part.mean() for part in np.array_split(cycle_s, parts)])
        return float(np.log(means).var(ddof=1))
