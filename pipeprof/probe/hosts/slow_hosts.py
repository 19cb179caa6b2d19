"""Find the hosts of a probe that get less than others where the storage has enough for all."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from statistics import median_high

from pipeprof.probe.budget import Budget
from pipeprof.probe.hosts.host_group import HostGroup
from pipeprof.probe.hosts.result import HostsPoint, SlowHost
from pipeprof.probe.result import LoadSpec

_SLOW = 0.8
"""A host is slow below this share of an ordinary one's rate."""
_MOST_SUSPECTS = 3
"""At most so many are tried alone, from the slowest on."""
_LEAST = 0.2
"""A slow host needs more time for as many requests, but at most five times as much."""
_MOST_PARTS = 16
"""More loads than these are not made to see each host where the storage has enough."""


def find_slow_hosts(
    group: HostGroup,
    points: Sequence[HostsPoint],
    knee: float | None,
    seconds: float,
    budget: Budget,
) -> list[SlowHost]:
    """Try alone the hosts that get least, each next to an ordinary one.

    While all read, a storage that is used up may give a slow host as much as any other. Then all
    hosts read once more, in parts of half as many as the ``knee``.

    Args:
        points: Loads of several numbers of hosts.
        knee: Number of hosts that use the storage up; ``None`` where all of them do not.
        seconds: Time of a load.
    """
    demand = points[0].demand
    shares = _shares(group, demand, points, knee, seconds, budget)
    if len(shares) < 2:
        return []
    numbers = {name: host for host, name in group.names.items()}
    suspects = [name for name in sorted(shares, key=lambda name: shares[name])
                if shares[name] < _SLOW]  # fmt: skip
    ordinary = min(shares, key=lambda name: abs(shares[name] - 1))
    slow = []
    for name in suspects[:_MOST_SUSPECTS]:
        own, others = (
            _alone(group, numbers.get(each), demand, seconds / max(_LEAST, shares[name]), budget)
            for each in (name, ordinary)
        )
        if own is not None and others is not None and own < _SLOW * others:
            slow.append(SlowHost(name, own, others))
    return slow


def _shares(
    group: HostGroup,
    demand: LoadSpec,
    points: Sequence[HostsPoint],
    knee: float | None,
    seconds: float,
    budget: Budget,
) -> dict[str, float]:
    """Return the rate of each host, as a share of an ordinary one's."""
    size = len(group.hosts) if knee is None else max(1, int(knee / 2))
    parts = ceil(len(group.hosts) / size)
    most = max(point.hosts for point in points)
    observed = [point for point in points if point.hosts == most]
    if 1 < parts <= _MOST_PARTS:
        observed = []
        for first in range(0, len(group.hosts), size):
            with budget.lend(0.5 / parts) as part:
                point = group.read(group.hosts[first : first + size], demand, seconds, part)
            observed += [point] if point is not None else []
    rates: dict[str, float] = {}
    for point in observed:
        for name, each in point.by_host.items():
            rates[name] = min(each.bytes_per_s, rates.get(name, each.bytes_per_s))
    return {name: rate / median_high(rates.values()) for name, rate in rates.items()}


def _alone(
    group: HostGroup, host: int | None, demand: LoadSpec, seconds: float, budget: Budget
) -> float | None:
    if host is None:
        return None
    with budget.lend(0.05) as part:
        point = group.read([host], demand, seconds, part)
    return None if point is None else point.bytes_per_s
