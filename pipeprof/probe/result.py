"""What a probe found."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

Pattern = Literal["sequential", "random"]


@dataclass(frozen=True)
class LoadSpec:
    """What is asked of the storage."""

    pattern: Pattern
    block_bytes: int
    """Of a request."""
    concurrency: int
    """Requests under way at any time."""


@dataclass(frozen=True)
class LoadPoint:
    """What it gave."""

    demand: LoadSpec
    requests: int
    """That ended in the steady part, which the figures below are of."""
    bytes: int
    seconds: float
    requests_per_s: float
    bytes_per_s: float
    p50_s: float
    """Of a request, from its call to its last byte."""
    p95_s: float
    p99_s: float
    mean_s: float
    most_s: float
    cpu_cores: float
    """That the processes which read used meanwhile."""
    processes: int = 1
    """That read."""
    client_bound: bool = False
    """Whether the CPU time that these processes can have was used up: then this is what this client
    gives on this machine, and the storage may give more."""
    spare_cores: float | None = None
    """Of the machine, that nobody used meanwhile."""

    @property
    def client_s(self) -> float:
        """CPU time of the client a request."""
        return self.cpu_cores / self.requests_per_s if self.requests_per_s else 0.0


@dataclass(frozen=True)
class Limits:
    """What the points come to."""

    bytes_per_s: float
    """The most, over all points."""
    at: LoadSpec
    """With which that is reached: the fewest requests under way that give 95 % of it."""
    stream_bytes_per_s: float
    """The most with one request at a time."""
    requests_per_s: float
    """The most, of the smallest blocks."""
    latency: LoadPoint
    """One small request at a time."""
    needed_in_flight: float
    """By Little's law: the most requests of ``at``'s size per second × the time that one takes when
    it is alone."""
    bandwidth_client_bound: bool = False
    """Whether ``bytes_per_s`` is what this client gives, not the storage; see `LoadPoint`."""
    requests_client_bound: bool = False
    """The same of ``requests_per_s``."""


@dataclass(frozen=True)
class Checkpoint:
    """A burst of writes that ends when the storage says it is kept (fsync, or the upload's end)."""

    size_bytes: int
    alone_bytes_per_s: float
    feeding_bytes_per_s: float
    """While the feed goes on."""
    feed: LoadPoint | None
    """What that got meanwhile; ``None`` when too little came to tell."""


@dataclass(frozen=True)
class SmallReads:
    """Many small files, each opened, asked for its size, read, closed: as `import` does."""

    files: int
    files_per_s: float
    p50_s: float
    p99_s: float


@dataclass(frozen=True)
class Needs:
    feed: LoadPoint | None
    """The best load, kept up."""
    checkpoint: Checkpoint | None = None
    code: SmallReads | None = None
    """``None``: nothing was to be written."""


@dataclass(frozen=True)
class ProbeResult:
    url: str
    """Without credentials."""
    client: str
    """How it was read."""
    cache: str
    """What is known of caches in between."""
    objects: int
    """That were read of, by turns."""
    size_bytes: int
    """Of these objects."""
    read_bytes: int
    """By this probe, in all."""
    read_requests: int
    points: tuple[LoadPoint, ...]
    limits: Limits | None
    """``None`` when no point could be measured."""
    needs: Needs | None = None
    """``None`` when they were not tried."""
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """As fio's JSON names things: ``jobs``, each with ``bw_bytes``, ``iops``, ``clat_ns``."""
        own = asdict(self)
        del own["points"]
        return {"pipeprof probe": own, "jobs": [_job(point) for point in self.points]}


def _job(point: LoadPoint) -> dict[str, Any]:
    demand = point.demand
    words = {"sequential": "read", "random": "randread"}
    nanoseconds = {
        "mean": point.mean_s * 1e9,
        "max": round(point.most_s * 1e9),
        "percentile": {
            "50.000000": round(point.p50_s * 1e9),
            "95.000000": round(point.p95_s * 1e9),
            "99.000000": round(point.p99_s * 1e9),
        },
    }
    return {
        "jobname": f"{words[demand.pattern]}-{demand.block_bytes}-{demand.concurrency}",
        "job options": {
            "rw": words[demand.pattern],
            "bs": str(demand.block_bytes),
            "numjobs": str(demand.concurrency),
        },
        "read": {
            "io_bytes": point.bytes,
            "bw_bytes": round(point.bytes_per_s),
            "iops": point.requests_per_s,
            "runtime": round(point.seconds * 1000),
            "total_ios": point.requests,
            "clat_ns": nanoseconds,
        },
        "cpu_cores": point.cpu_cores,
        "processes": point.processes,
        "client_bound": point.client_bound,
    }
