"""Probe a storage from a team of hosts: one alone, then 1, 2, 4, … of them at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from pipeprof.probe.budget import Budget
from pipeprof.probe.concurrency_ramp import ProbeSpec
from pipeprof.probe.hosts.curve import HostCurve, fit_curve
from pipeprof.probe.hosts.host_group import HostGroup
from pipeprof.probe.hosts.orders import Team
from pipeprof.probe.hosts.result import HostsPoint, HostsProbe, SharedCheckpoint, SlowHost
from pipeprof.probe.hosts.slow_hosts import find_slow_hosts
from pipeprof.probe.result import LoadSpec, ProbeResult
from pipeprof.units import counted

_RAMP_SHARE = 0.3
"""The share of time, bytes and requests for the first host alone."""
_CURVE_SHARE = 0.6
"""The share of the remaining budget for the curve; the rest is for the feed and what follows."""
_ROUNDS = 2
"""Each number of hosts reads so many times, other hosts each time."""
_LEAST_CONCURRENCY, _SPARE = 4, 2
"""Concurrent requests of a host: at least so many, and so many times those that it needs alone."""

OnPoint = Callable[[HostsPoint], None]
"""Called with each load as soon as it is measured."""


def probe_hosts(team: Team, spec: ProbeSpec, on_point: OnPoint = lambda point: None) -> HostsProbe:
    """Probe the storage of ``spec`` from all hosts of ``team``.

    The limits on time, bytes and requests are for all hosts together.

    Raises:
        StorageError: Some hosts do not see the objects, see other ones, or cannot read them.
    """
    group, budget = HostGroup(team, spec), Budget(spec.most_bytes, spec.most_requests)
    with budget.lend(_RAMP_SHARE) as part:
        alone = group.ramp(spec.seconds * _RAMP_SHARE, part)
    best: list[HostsPoint] = []
    small: list[HostsPoint] = []
    slow: list[SlowHost] = []
    feed = checkpoint = None
    if alone.limits is not None:
        group.start(max(point.processes for point in alone.points))
        demand = _enough(alone.limits.at, spec)
        loads = _loads(group, demand, _most_requests(alone))
        seconds = spec.seconds * (1 - _RAMP_SHARE) / len(loads)
        with budget.lend(_CURVE_SHARE) as part:
            for point in _points(group, loads, seconds, part):
                (best if point.demand == demand else small).append(point)
                on_point(point)
        if best:
            slow = find_slow_hosts(group, best, _rough_knee(best), seconds, budget)
        if spec.feed_seconds:
            with budget.lend(0.5) as part:
                feed = group.read(group.hosts, demand, spec.feed_seconds, part)
        if spec.write_bytes:
            checkpoint = _checkpoint(group, spec.write_bytes, demand, budget)
    return HostsProbe(
        alone=alone,
        hosts=tuple(group.names.values()),
        bandwidth_points=tuple(best),
        request_points=tuple(small),
        bandwidth=_curve(best, slow, lambda point: point.bytes_per_s),
        requests=_curve(small, slow, lambda point: point.requests_per_s),
        slow=tuple(slow),
        feed=feed,
        checkpoint=checkpoint,
        read_bytes=budget.bytes,
        read_requests=budget.requests,
        notes=tuple(_notes(group, budget, best)),
    )


def host_counts(hosts: int) -> list[int]:
    """Return 1, 2, 4, … and ``hosts`` itself."""
    return sorted({*(1 << power for power in range(hosts.bit_length())), hosts})


_HostsLoad = tuple[LoadSpec, list[int]]
"""A load, and the hosts that make it."""


def _enough(knee: LoadSpec, spec: ProbeSpec) -> LoadSpec:
    """Return the load with so many concurrent requests that a host is not idle when other hosts
    make each of them slower."""
    wanted = max(_LEAST_CONCURRENCY, _SPARE * knee.concurrency)
    return replace(knee, concurrency=max(knee.concurrency, min(spec.most_in_flight, wanted)))


def _loads(group: HostGroup, best: LoadSpec, small: LoadSpec) -> list[_HostsLoad]:
    """Return the loads of the curve. Every second round takes the hosts from the other end, so that
    a slow one is not always among the few."""
    hosts, counts = group.hosts, host_counts(len(group.hosts))
    loads: list[_HostsLoad] = []
    for demand in (best, small) if small.block_bytes != best.block_bytes else (best,):
        for _ in range(_ROUNDS):
            loads += [(demand, hosts[:count]) for count in counts]
            hosts, counts = hosts[::-1], counts[::-1]
    return loads


def _points(
    group: HostGroup, loads: Sequence[_HostsLoad], seconds: float, budget: Budget
) -> Iterator[HostsPoint]:
    for place, (demand, hosts) in enumerate(loads):
        left = [host for host in hosts if host in group.names]
        if not left:
            continue
        with budget.lend(len(hosts) / sum(len(each) for _, each in loads[place:])) as part:
            point = group.read(left, demand, seconds, part)
        if point is not None:
            yield point


def _curve(
    points: Sequence[HostsPoint], slow: Sequence[SlowHost], rate: Callable[[HostsPoint], float]
) -> HostCurve | None:
    """Fit the rates; a slow host counts as the part of an ordinary one that it gets alone."""
    parts = {each.host: each.bytes_per_s / each.others_bytes_per_s for each in slow}
    hosts = [sum(parts.get(name, 1.0) for name in point.by_host) for point in points]
    return fit_curve(list(zip(hosts, map(rate, points), strict=True))) if points else None


def _rough_knee(points: Sequence[HostsPoint]) -> float | None:
    """Return the knee where slow hosts are not known yet."""
    found = _curve(points, (), lambda point: point.bytes_per_s)
    return found.knee if found is not None else None


def _most_requests(alone: ProbeResult) -> LoadSpec:
    """Return the load of the smallest blocks that gave most requests."""
    smallest = min(point.demand.block_bytes for point in alone.points)
    small = [point for point in alone.points if point.demand.block_bytes == smallest]
    return max(small, key=lambda point: point.requests_per_s).demand


def _checkpoint(group: HostGroup, size: int, demand: LoadSpec, budget: Budget) -> SharedCheckpoint:
    """Have all hosts write at once, alone and during reads; then read what another host wrote."""
    alone = group.write(demand, 0.0, budget)
    alone_s = max(each.wrote_s or 0.0 for each in alone.values())
    # the feed lasts about as long as the first checkpoint took
    with budget.lend(0.5) as part:
        feeding = group.write(demand, max(1.0, alone_s), part)
    feeding_s = max(each.wrote_s or 0.0 for each in feeding.values())
    files = [each.wrote_file for each in feeding.values()]
    # a host's own file may be in its page cache
    others = (*files[1:], files[0])
    sequential = replace(demand, pattern="sequential")
    restored = group.read(list(feeding), sequential, max(1.0, alone_s), budget, others)
    fed = [each.point.bytes_per_s for each in feeding.values() if each.point]
    return SharedCheckpoint(
        size_bytes=size,
        hosts=len(feeding),
        alone_bytes_per_s=size * len(alone) / alone_s,
        feeding_bytes_per_s=size * len(feeding) / feeding_s,
        feed_bytes_per_s=sum(fed) if len(fed) == len(feeding) else None,
        restore_bytes_per_s=restored.bytes_per_s if restored else None,
    )


def _notes(group: HostGroup, budget: Budget, points: Sequence[HostsPoint]) -> Iterator[str]:
    yield from group.notes
    if group.too_short:
        yield (
            f"{counted(group.too_short, 'load')} ended before each host showed a rate, and are "
            "left out; increase --seconds"
        )
    if budget.spent:
        yield "--max-bytes or --max-requests cut some loads short, which are less certain"
    if any(point.client_bound for point in points):
        yield (
            "client-bound: most hosts had no CPU time left in some loads, and the storage may give "
            "more to others"
        )
