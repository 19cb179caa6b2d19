"""What pairs of runs say, and how sure that is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import isinf
from typing import Literal

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Verdict = Literal["met", "MISSED", "not judged"]

ENOUGH = 6
"""Sessions; fewer tell nothing of how they differ."""
_RESAMPLES = 2000
_ODD = 0.05
"""Of the rounds at either end, that are left out: what disturbs a round says nothing. What we do
now and then, such as folding rows, is less than the noise of a round, and stays in."""


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

    ``relative``: as a share of plain, else in its unit. A share is a mean of logarithms: of two
    quantities that are noisy alike, the mean of their quotients is above 1, and the quotient by a
    mean of two is mostly below.
    """
    if not relative:
        return estimate(measured - np.mean(plain, axis=0), seed, trimmed)
    found = estimate(np.log(measured) - np.mean(np.log(plain), axis=0), seed, trimmed)
    return Estimate(*(float(np.expm1(end)) for end in (found.middle, found.low, found.high)))


def mixed(share: float, one: Floats, other: Floats, relative: bool) -> Floats:
    """``share`` of ``one``, and of the other what is left; by logarithms where `added` is."""
    if not relative:
        return share * one + (1 - share) * other
    return np.exp(share * np.log(one) + (1 - share) * np.log(other))


def trimmed(rounds: Floats) -> Floats:
    """The mean along the last axis, less `_ODD` of it at either end."""
    odd = int(_ODD * rounds.shape[-1])
    ordered = np.sort(rounds, axis=-1)
    middle: Floats = ordered[..., odd : rounds.shape[-1] - odd].mean(axis=-1)
    return middle


def median(rounds: Floats) -> Floats:
    """Along the last axis."""
    middle: Floats = np.median(rounds, axis=-1)
    return middle


def estimate(
    differences: Floats, seed: int = 0, middle: Callable[[Floats], Floats] = median
) -> Estimate:
    """The ``middle`` over all rounds of all sessions.

    The interval is of a bootstrap of whole sessions, since the rounds of one share processes,
    and so their luck. Of fewer than `ENOUGH` it is everything.
    """
    sessions = len(differences)
    found = float(middle(differences.ravel()))
    if sessions < ENOUGH:
        return Estimate(found, float("-inf"), float("inf"))
    picks = np.random.default_rng(seed).integers(0, sessions, size=(_RESAMPLES, sessions))
    middles = middle(differences[picks].reshape(_RESAMPLES, -1))
    low, high = np.percentile(middles, [2.5, 97.5])
    return Estimate(found, float(low), float(high))


def say(estimate: Estimate, relative: bool) -> str:
    """In per cent, or in µs."""
    scale, unit = (100, "%") if relative else (1e6, "µs")
    middle, low, high = (
        f"{value * scale:+.2f}" for value in (estimate.middle, estimate.low, estimate.high)
    )
    interval = "unknown" if isinf(estimate.high) else f"{low}, {high}"
    return f"{middle} {unit} [{interval}]"


def judge(cost: Estimate, control: Estimate, most: float, quiet: float) -> Verdict:
    """The upper end of ``cost`` against ``most``, if the machine was quiet enough to tell.

    A cost so high that no noise of this machine explains it misses the bar in any case.
    """
    if cost.low - max(-control.low, control.high) > most:
        return "MISSED"
    if not control.within(quiet):
        return "not judged"
    return "met" if cost.high <= most else "MISSED"
