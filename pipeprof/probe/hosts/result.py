"""The result of a probe from many hosts."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from pipeprof.probe.hosts.curve import HostCurve
from pipeprof.probe.result import LoadPoint, LoadSpec, ProbeResult


@dataclass(frozen=True)
class HostsPoint:
    """What several hosts got together, in the steady part of the time."""

    demand: LoadSpec
    """The load of each host."""
    by_host: dict[str, LoadPoint]
    """Host → what it got."""

    @property
    def hosts(self) -> int:
        return len(self.by_host)

    @property
    def bytes_per_s(self) -> float:
        return sum(point.bytes_per_s for point in self.by_host.values())

    @property
    def requests_per_s(self) -> float:
        return sum(point.requests_per_s for point in self.by_host.values())

    @property
    def client_bound(self) -> bool:
        """Whether most hosts had no CPU time left."""
        return 2 * sum(point.client_bound for point in self.by_host.values()) > self.hosts

    def to_dict(self) -> dict[str, Any]:
        """Return the point with its totals, and each host's rates."""
        return {
            "demand": asdict(self.demand),
            "hosts": self.hosts,
            "bytes_per_s": self.bytes_per_s,
            "requests_per_s": self.requests_per_s,
            "by_host": {
                host: {
                    name: getattr(point, name)
                    for name in ("bytes_per_s", "requests_per_s", "p50_s", "p99_s", "client_bound")
                }
                for host, point in self.by_host.items()
            },
        }


@dataclass(frozen=True)
class SlowHost:
    """A host that gets less than the others when it reads alone, too."""

    host: str
    bytes_per_s: float
    """Its rate alone."""
    others_bytes_per_s: float
    """The rate of an ordinary host alone, measured next to it."""


@dataclass(frozen=True)
class SharedCheckpoint:
    """Checkpoints that all hosts write at once."""

    size_bytes: int
    """Bytes that each host writes."""
    hosts: int
    alone_bytes_per_s: float
    """Rate of all hosts together, until the last one has stored its part."""
    feeding_bytes_per_s: float
    """The same while all hosts read."""
    feed_bytes_per_s: float | None
    """What the reads of all hosts got meanwhile; ``None`` when too few requests ended."""
    restore_bytes_per_s: float | None
    """Rate at which all hosts read what another host wrote."""


@dataclass(frozen=True)
class HostsProbe:
    """Everything that a probe from many hosts measured."""

    alone: ProbeResult
    """The first host alone, with more and more concurrent requests."""
    hosts: tuple[str, ...]
    """Names of all hosts."""
    bandwidth_points: tuple[HostsPoint, ...]
    """Loads of the best kind, in the order of their measurement."""
    request_points: tuple[HostsPoint, ...]
    """Loads with the smallest blocks."""
    bandwidth: HostCurve | None
    """The fit in bytes/s; ``None`` where too few requests ended."""
    requests: HostCurve | None
    """The fit in requests/s."""
    slow: tuple[SlowHost, ...]
    feed: HostsPoint | None
    """The best load of all hosts, sustained; ``None`` where it was not measured."""
    checkpoint: SharedCheckpoint | None
    """``None`` where nothing was written."""
    read_bytes: int
    """Bytes that all hosts have read."""
    read_requests: int
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the first host's result as `ProbeResult.to_dict` does, and ``hosts``."""
        curves = {"bandwidth": self.bandwidth, "requests": self.requests}
        return {
            **self.alone.to_dict(),
            "hosts": {
                "names": list(self.hosts),
                **{name: curve and asdict(curve) | {"knee": curve.knee}
                   for name, curve in curves.items()},
                "bandwidth_points": [point.to_dict() for point in self.bandwidth_points],
                "request_points": [point.to_dict() for point in self.request_points],
                "slow": [asdict(each) for each in self.slow],
                "feed": self.feed and self.feed.to_dict(),
                "checkpoint": self.checkpoint and asdict(self.checkpoint),
                "read_bytes": self.read_bytes,
                "read_requests": self.read_requests,
                "notes": list(self.notes),
            },
        }  # fmt: skip
