"""What pairs of runs say, and how sure that is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Verdict = Literal["met", "MISSED", "not judged"]

ENOUGH = 6
"""Sessions; fewer tell nothing of how they differ."""
_RESAMPLES = 2000


@dataclass(frozen=True)
class Estimate:
    middle: float
    low: float
    """Of the 95 % interval."""
    high: float

    def within(self, bound: float) -> bool:
        return -bound <= self.low and self.high <= bound


def added(measured: Floats, *plain: Floats, relative: bool, seed: int = 0) -> Estimate:
    """What ``measured`` costs above the mean of ``plain``, each of shape (sessions, rounds).

    ``relative``: as a share of plain, else in its unit.
    """
    base = np.mean(plain, axis=0)
    return estimate(measured / base - 1 if relative else measured - base, seed)


def estimate(differences: Floats, seed: int = 0) -> Estimate:
    """The median over all rounds of all sessions: a round that something disturbs says nothing.

    The interval is of a bootstrap of whole sessions, since the rounds of one share processes,
    and so their luck. Of fewer than `ENOUGH` it is everything.
    """
    sessions = len(differences)
    if sessions < ENOUGH:
        return Estimate(float(np.median(differences)), float("-inf"), float("inf"))
    picks = np.random.default_rng(seed).integers(0, sessions, size=(_RESAMPLES, sessions))
    medians = np.median(differences[picks].reshape(_RESAMPLES, -1), axis=1)
    low, high = np.percentile(medians, [2.5, 97.5])
    return Estimate(float(np.median(differences)), float(low), float(high))


def judge(cost: Estimate, control: Estimate, most: float, quiet: float) -> Verdict:
    """The upper end of ``cost`` against ``most``, if the machine was quiet enough to tell.

    A cost so high that no noise of this machine explains it misses the bar in any case.
    """
    if cost.low - max(-control.low, control.high) > most:
        return "MISSED"
    if not control.within(quiet):
        return "not judged"
    return "met" if cost.high <= most else "MISSED"
