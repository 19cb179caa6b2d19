"""The result of a probe, and its form as JSON in the style of fio."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

Pattern = Literal["sequential", "random"]


@dataclass(frozen=True)
class LoadSpec:
    """A load on the storage."""

    pattern: Pattern
    block_bytes: int
    """Bytes of a request."""
    concurrency: int
    """Requests in flight at any time."""


@dataclass(frozen=True)
class LoadPoint:
    """What the storage gave under a load, in the steady part of the time."""

    demand: LoadSpec
    requests: int
    """Requests that ended in the steady part."""
    bytes: int
    seconds: float
    requests_per_s: float
    bytes_per_s: float
    p50_s: float
    """Median seconds of a request, from its call to its last byte."""
    p95_s: float
    p99_s: float
    mean_s: float
    most_s: float
    cpu_cores: float
    """Mean number of cores that the reading processes used."""
    processes: int = 1
    """Processes that read."""
    client_bound: bool = False
    """Whether these processes had no CPU time left: then the client is the limit, and the storage
    may give more."""
    spare_cores: float | None = None
    """Mean number of idle cores of the machine; ``None`` is unknown."""

    @property
    def client_s(self) -> float:
        """CPU seconds of the client for a request."""
        return self.cpu_cores / self.requests_per_s if self.requests_per_s else 0.0


@dataclass(frozen=True)
class Limits:
    """The limits of the storage that the load points show."""

    bytes_per_s: float
    """The highest rate of all points."""
    at: LoadSpec
    """The load with the fewest requests in flight that gives 95 % of that rate."""
    stream_bytes_per_s: float
    """The highest rate with one request at a time."""
    requests_per_s: float
    """The highest rate of requests with the smallest blocks."""
    latency: LoadPoint
    """The point of one small request at a time."""
    needed_in_flight: float
    """Requests in flight by Little's law: the highest rate of requests of ``at``'s size, times the
    seconds of a single one."""
    bandwidth_client_bound: bool = False
    """Whether the client, not the storage, limits ``bytes_per_s``; see `LoadPoint`."""
    requests_client_bound: bool = False
    """Whether the client limits ``requests_per_s``."""


@dataclass(frozen=True)
class Checkpoint:
    """A burst of writes that ends when the storage confirms it, by fsync or the upload's end."""

    size_bytes: int
    alone_bytes_per_s: float
    feeding_bytes_per_s: float
    """The rate of the checkpoint while the feed reads."""
    feed: LoadPoint | None
    """What the feed received meanwhile; ``None`` when too few requests ended."""


@dataclass(frozen=True)
class SmallReads:
    """Reads of many small files: each is opened, asked for its size, read and closed, as by
    `import`."""

    files: int
    files_per_s: float
    p50_s: float
    p99_s: float


@dataclass(frozen=True)
class Needs:
    """How the storage meets the needs of training: a steady feed, checkpoints, loading code."""

    feed: LoadPoint | None
    """The best load, sustained."""
    checkpoint: Checkpoint | None = None
    code: SmallReads | None = None
    """This and ``checkpoint`` are ``None`` where nothing was written."""


@dataclass(frozen=True)
class GpuDirect:
    """Whether GPUDirect Storage may read the files straight into a GPU's memory."""

    lacking: tuple[str, ...]
    """What this machine or the file system lacks for it, in words."""


@dataclass(frozen=True)
class ProbeResult:
    """Everything that a probe measured."""

    url: str
    """The URL without credentials."""
    client: str
    """How the objects were read, in words."""
    cache: str
    """What is known about caches in between, in words."""
    objects: int
    """Objects of which blocks were read."""
    size_bytes: int
    """Total size of these objects."""
    read_bytes: int
    """Total bytes that the probe has read."""
    read_requests: int
    points: tuple[LoadPoint, ...]
    limits: Limits | None
    """``None`` when no point could be measured."""
    needs: Needs | None = None
    """``None`` when they were not measured."""
    notes: tuple[str, ...] = ()
    gpu_direct: GpuDirect | None = None
    """``None`` for objects that are not files of this machine."""

    def to_dict(self) -> dict[str, Any]:
        """Return the result with fio's names: ``jobs`` with ``bw_bytes``, ``iops``, ``clat_ns``."""
        own = asdict(self)
        del own["points"]
        return {"pipeprof probe": own, "jobs": [_job(point) for point in self.points]}


def _job(point: LoadPoint) -> dict[str, Any]:
    demand = point.demand
    rw = {"sequential": "read", "random": "randread"}[demand.pattern]
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
        "jobname": f"{rw}-{demand.block_bytes}-{demand.concurrency}",
        "job options": {
            "rw": rw,
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
