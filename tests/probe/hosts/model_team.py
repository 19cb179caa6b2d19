"""A team of hosts whose rates are exactly known: those of a formula."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pipeprof.probe.concurrency_ramp import find_limits
from pipeprof.probe.hosts.orders import (
    Answer,
    HostListing,
    HostLoad,
    Load,
    Look,
    Order,
    Ramp,
    Ready,
)
from pipeprof.probe.result import ProbeResult
from tests.probe.test_concurrency_ramp import point

BLOCK = 1000


@dataclass
class ModelTeam:
    """Hosts that share a storage as max-min fairness does."""

    hosts_bytes_per_s: Sequence[float]
    """What each host can take."""
    storage_bytes_per_s: float
    write_s: float = 2.0
    digests: Mapping[int, str] = field(default_factory=dict)
    """Host → the digest of what it sees, where that is not what the others see."""
    failed: Mapping[int, str] = field(default_factory=dict)
    dead_from: Mapping[int, int] = field(default_factory=dict)
    """Host → number of the order from which on it gives no answer."""
    notes: Sequence[str] = ()
    orders: list[tuple[tuple[int, ...], Order]] = field(default_factory=list)

    @property
    def hosts(self) -> range:
        return range(len(self.hosts_bytes_per_s))

    def order(self, hosts: Sequence[int], order: Order, timeout_s: float) -> Mapping[int, Answer]:
        number = len(self.orders)
        self.orders.append((tuple(hosts), order))
        alive = [host for host in hosts if number < self.dead_from.get(host, 1 << 30)]
        rates = dict(zip(alive, self._shares(alive), strict=True))
        return {host: self._answer(host, order, rates[host]) for host in alive}

    def _answer(self, host: int, order: Order, rate: float) -> Answer:
        name = f"node{host}"
        match order:
            case Look():
                seen = HostListing(3, 30_000, self.digests.get(host, "same"), "direct", "none")
                failed = self.failed.get(host, "")
                return Answer(name, failed, None if failed else seen)
            case Ramp():
                return Answer(name, ramp=self._ramp(rate, order))
            case Ready():
                return Answer(name)
            case Load():
                return Answer(name, load=self._load(host, order, rate))
        raise AssertionError(order)

    def _ramp(self, rate: float, order: Ramp) -> ProbeResult:
        points = (
            point(10, 1, 2000, 0.001), point(10, 2, 4000, 0.001),
            point(BLOCK, 1, rate / BLOCK / 2, 0.001), point(BLOCK, 2, rate / BLOCK, 0.001),
        )  # fmt: skip
        used = min(order.most_bytes, BLOCK * order.most_requests, int(rate * order.seconds))
        return ProbeResult("x", "direct", "none", 3, 30_000, used, used // BLOCK, points,
                           find_limits(points))  # fmt: skip

    def _load(self, host: int, order: Load, rate: float) -> HostLoad:
        wrote_s = self.write_s if order.write_bytes else None
        file = f"x/{host}/checkpoint" if order.write_bytes else ""
        if not order.read:
            return HostLoad(wrote_s=wrote_s, wrote_file=file)
        block = order.demand.block_bytes
        wanted = int(rate * order.seconds)
        used = min(wanted, order.most_bytes, block * order.most_requests)
        measured = point(block, order.demand.concurrency, rate / block, 0.01)
        return HostLoad(measured, used, used // block, used < wanted, wrote_s, file)

    def _shares(self, hosts: Sequence[int]) -> list[float]:
        left, shares = self.storage_bytes_per_s, dict.fromkeys(hosts, 0.0)
        waiting = sorted(hosts, key=lambda host: self.hosts_bytes_per_s[host])
        for place, host in enumerate(waiting):
            shares[host] = min(self.hosts_bytes_per_s[host], left / (len(waiting) - place))
            left -= shares[host]
        return [shares[host] for host in hosts]
