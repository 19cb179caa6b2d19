"""Fit how a rate grows with the number of hosts: evenly, until the storage gives no more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log, sqrt
from statistics import mean

from pipeprof.analyze.profile.intervals import student_t

_LEAST_LOST = 1.1
"""The storage has a limit when so many times its rate would be the hosts' own, all together."""


@dataclass(frozen=True)
class Limit:
    """A limit that a fit found, with the 95 % interval of what the same probe would find again."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class HostCurve:
    """The rate of ``n`` hosts: ``min(n * per_host, total)``."""

    per_host: Limit
    """Rate of one host where the storage has enough for all."""
    total: Limit | None
    """Rate of the storage for any number of hosts; ``None`` where these hosts do not reach it."""
    most_hosts: float
    """Most hosts that read."""

    @property
    def knee(self) -> float | None:
        """Number of hosts from which on more of them bring no more."""
        return None if self.total is None else self.total.value / self.per_host.value

    def rate(self, hosts: float) -> float:
        """Return the fitted rate of so many hosts."""
        grown = hosts * self.per_host.value
        return grown if self.total is None else min(grown, self.total.value)


def fit_curve(points: Sequence[tuple[float, float]]) -> HostCurve:
    """Fit both limits to the rates of several numbers of hosts, by least squares of their ratios.

    Args:
        points: Number of hosts, and their rate together. A slow host counts as a part of one.

    Example:
        >>> fit_curve([(1, 10.0), (2, 20.0), (4, 25.0)]).knee
        2.5
    """
    numbers = sorted({hosts for hosts, _ in points})
    fits = [_fit(points, last) for last in numbers]
    allowed = [fit for fit in fits if fit is not None]
    return min(allowed, key=lambda curve: _squares(points, curve))


def _fit(points: Sequence[tuple[float, float]], last: float) -> HostCurve | None:
    """Fit with ``last`` the most hosts before the storage's limit; ``None`` where all hosts do not
    reach such a limit."""
    most = max(hosts for hosts, _ in points)
    before = [log(rate / hosts) for hosts, rate in points if hosts <= last]
    after = [log(rate) for hosts, rate in points if hosts > last]
    degrees = max(1, len(points) - 1 - bool(after))
    squares = sum((value - mean(group)) ** 2 for group in (before, after) for value in group)
    deviation = sqrt(squares / degrees)
    per_host = _limit(before, deviation, degrees)
    if not after:
        return HostCurve(per_host, None, most)
    total = _limit(after, deviation, degrees)
    if most * per_host.value < _LEAST_LOST * total.value:
        return None
    return HostCurve(per_host, total, most)


def _limit(logarithms: Sequence[float], deviation: float, degrees: int) -> Limit:
    # both this probe and the next one deviate
    margin = student_t(degrees) * deviation * sqrt(2 / len(logarithms))
    middle = mean(logarithms)
    return Limit(exp(middle), exp(middle - margin), exp(middle + margin))


def _squares(points: Sequence[tuple[float, float]], curve: HostCurve) -> float:
    return sum((log(rate) - log(curve.rate(hosts))) ** 2 for hosts, rate in points)
