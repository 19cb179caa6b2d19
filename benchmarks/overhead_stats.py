"""Estimates a cost from runs in pairs, with its 95 % interval."""

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
"""Fewest sessions for an interval, which is estimated from how sessions differ."""
_RESAMPLES = 2000
_ODD = 0.05
"""Share of the rounds that is left out at either end, where rounds were disturbed. Our periodic
work, such as folding rows, is less than the noise of a round, so it is still included."""


@dataclass(frozen=True)
class Estimate:
    middle: float
    low: float
    """Lower end of the 95 % interval; ``high`` is its upper end."""
    high: float

    def within(self, bound: float) -> bool:
        return -bound <= self.low and self.high <= bound


def added(measured: Floats, *plain: Floats, relative: bool, seed: int = 0) -> Estimate:
    """Return the cost of ``measured`` above the mean of ``plain``, of shape (sessions, rounds).

    ``relative``: as a share of plain, else in its unit. A share comes from a mean of logarithms.
    For equal quantities with equal noise, the mean of quotients would be above 1, and a quotient by
    the mean of two would mostly be below 1.
    """
    if not relative:
        return estimate(measured - np.mean(plain, axis=0), seed, trimmed)
    found = estimate(np.log(measured) - np.mean(np.log(plain), axis=0), seed, trimmed)
    return Estimate(*(float(np.expm1(end)) for end in (found.middle, found.low, found.high)))


def mixed(share: float, one: Floats, other: Floats, relative: bool) -> Floats:
    """Return the mean, with weight ``share`` for ``one``; of logarithms where `added` uses them."""
    if not relative:
        return share * one + (1 - share) * other
    return np.exp(share * np.log(one) + (1 - share) * np.log(other))


def trimmed(rounds: Floats) -> Floats:
    """Return the mean along the last axis, without the share `_ODD` at either end."""
    odd = int(_ODD * rounds.shape[-1])
    ordered = np.sort(rounds, axis=-1)
    middle: Floats = ordered[..., odd : rounds.shape[-1] - odd].mean(axis=-1)
    return middle


def median(rounds: Floats) -> Floats:
    """Return the median along the last axis."""
    middle: Floats = np.median(rounds, axis=-1)
    return middle


def estimate(
    differences: Floats, seed: int = 0, middle: Callable[[Floats], Floats] = median
) -> Estimate:
    """Return the ``middle`` over all rounds of all sessions, with its interval.

    The interval comes from a bootstrap of whole sessions, as the rounds of a session share
    processes, and so are not independent. With fewer than `ENOUGH` sessions it is infinite.
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
    """Return the estimate as text, in per cent or in µs."""
    scale, unit = (100, "%") if relative else (1e6, "µs")
    middle, low, high = (
        f"{value * scale:+.2f}" for value in (estimate.middle, estimate.low, estimate.high)
    )
    interval = "unknown" if isinf(estimate.high) else f"{low}, {high}"
    return f"{middle} {unit} [{interval}]"


def judge(cost: Estimate, control: Estimate, most: float, quiet: float) -> Verdict:
    """Compare the upper end of ``cost`` with ``most``, if the machine was quiet enough for that.

    A cost that is too high to be explained by this machine's noise misses the bar in any case.
    """
    if cost.low - max(-control.low, control.high) > most:
        return "MISSED"
    if not control.within(quiet):
        return "not judged"
    return "met" if cost.high <= most else "MISSED"
