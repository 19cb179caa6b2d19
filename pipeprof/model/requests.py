"""Define the storage requests of a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pipeprof.model.stages import Source

STORAGE_PARTS: Final = ("storage-bandwidth", "storage-latency", "storage-client")
"""Values of `Diagnosis.bottleneck` for a known part of storage."""

Histogram = tuple[tuple[float, int], ...]
"""(Value, count) pairs in ascending order; values are accurate to 3 %."""


@dataclass(frozen=True)
class RequestLog:
    """Totals of the requests of a whole run, warm-up included. A failed request counts in
    ``failed`` and in no other field."""

    count: int = 0
    bytes: int = 0
    """Bytes received."""
    seconds: float = 0.0
    """Time from sending to the last byte, retries included, summed over all requests, also
    concurrent ones."""
    first_byte_count: int = 0
    """Requests for which the arrival of the first byte is known."""
    first_byte_s: float = 0.0
    """Time from sending to the first byte, summed over those requests."""
    size_squares: float = 0.0
    """Σ size², for the linear fit of seconds over bytes."""
    seconds_squares: float = 0.0
    """Σ seconds²."""
    size_seconds: float = 0.0
    """Σ size · seconds."""
    retries: int = 0
    throttled: int = 0
    """Responses that asked the client to slow down."""
    failed: int = 0
    """Requests that were given up."""
    lost: int = 0
    """Requests not recorded because too many were concurrent."""
    busy_s: float = 0.0
    """Time in which a worker had at least one pending request, summed over workers."""
    store_s: float = 0.0
    """Time that workers waited for reads by their store, summed over workers."""
    store_cpu_s: float = 0.0
    """CPU time of the process during ``store_s``, over all its threads."""
    looked_s: float = 0.0
    """The part of ``store_s`` during which waiting for a core was sampled."""
    waited_s: float = 0.0
    """The part of ``looked_s`` in which threads waited for a core."""
    began_s: float = 0.0
    """Moment at which the first request was sent, on the monotonic clock of the run."""
    ended_s: float = 0.0
    """Moment at which the last request ended."""
    latencies: Histogram = ()
    """Durations in seconds."""
    first_bytes: Histogram = ()
    """Times to the first byte in seconds."""
    sizes: Histogram = ()
    """Sizes in bytes."""


NO_REQUESTS: Final = RequestLog()


@dataclass(frozen=True)
class LoneRequests:
    """A few requests for the same objects, one at a time, while no other process read them."""

    small_bytes: int
    small_s: float
    """Mean seconds per small request; the mean, because a rate-limited storage answers in
    bursts."""
    large_bytes: int
    large_s: float
    count: int
    """Number of large requests."""


@dataclass(frozen=True)
class Percentiles:
    """Statistics of one quantity over all requests, in the unit of that quantity."""

    mean: float
    """Exact mean."""
    p50: float
    """Accurate to 3 %, like the other percentiles."""
    p95: float
    """Accurate to 3 %."""
    p99: float
    """Accurate to 3 %."""


@dataclass(frozen=True)
class RequestFit:
    """A linear fit of time over size for all requests, which separates the fixed time per request
    from the time per byte. It describes requests under the concurrency of the run."""

    latency_intercept_s: float
    """Time of a request without bytes."""
    bandwidth: float | None
    """Bytes/s of one request after its first byte; ``None`` when bytes add no time."""
    r2: float
    """Share, 0..1, of the variance of the times that the line explains."""
    latency_share: float
    """Share, 0..1, of the requests' time that does not depend on their size."""
    latency_share_interval: tuple[float, float]
    """95 % interval of ``latency_share``."""


@dataclass(frozen=True)
class RequestStats:
    """Statistics of the storage requests of a run, warm-up included."""

    count: int
    bytes: int
    requests_per_s: float
    """Mean rate from the first to the last request."""
    in_flight: float
    """Mean number of concurrent requests of all workers together, from the first to the last
    request (Little's law)."""
    at_once: float
    """Mean number of concurrent requests of one worker while it has any."""
    size: Percentiles
    """Sizes in bytes."""
    latency_s: Percentiles
    """Seconds from sending to the last byte, retries included."""
    first_byte_s: Percentiles | None
    """Seconds from sending to the first byte; ``None``: unknown for most requests."""
    retries: int
    throttled: int
    """Responses that asked the client to slow down."""
    errors: int
    """Requests that were given up; no other figure includes them."""
    lost: int
    """Requests that were not recorded."""
    client_cpu_s: float | None
    """CPU seconds per request of the whole process while it waited for its store; ``None``: not
    observed."""
    client_share: float | None
    """That CPU time divided by the time waited: 1 means one busy core."""
    core_wait_share: float | None
    """Share, 0..1, of the time waited in which a runnable thread of the process had no core;
    ``None``: unknown."""
    fit: RequestFit | None
    """``None``: latency and bandwidth could not be separated, see ``fit_missing``."""
    fit_missing: str
    """Why there is no ``fit``; empty when there is one."""
    source: Source = "measured"
