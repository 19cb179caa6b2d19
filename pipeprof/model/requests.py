"""What a run asked of storage, request by request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pipeprof.model.stages import Source

STORAGE_PARTS: Final = ("storage-bandwidth", "storage-latency", "storage-client")
"""A `Diagnosis.bottleneck` where reading is to blame, and it can be told what of it."""

Histogram = tuple[tuple[float, int], ...]
"""(Value, how many), ascending; values within 3 %."""


@dataclass(frozen=True)
class RequestLog:
    """The requests of a whole run, warm-up included, counted. A failed one counts as failed, and
    is in no other figure."""

    count: int = 0
    bytes: int = 0
    """That came."""
    seconds: float = 0.0
    """From sending to the last byte, retries included; summed, however many ran beside each
    other."""
    first_byte_count: int = 0
    """Requests of which the moment of the first byte is known."""
    first_byte_s: float = 0.0
    """From sending to that; summed."""
    size_squares: float = 0.0
    """Sums for a straight line of seconds over bytes: Σ size²."""
    seconds_squares: float = 0.0
    """Σ seconds²."""
    size_seconds: float = 0.0
    """Σ size · seconds."""
    retries: int = 0
    throttled: int = 0
    """Answers that asked to slow down."""
    failed: int = 0
    """Given up."""
    lost: int = 0
    """Not counted: too many at once."""
    busy_s: float = 0.0
    """In which a worker had any request under way; summed over workers."""
    store_s: float = 0.0
    """In which who makes batches waited for its store's reads; summed over workers."""
    store_cpu_s: float = 0.0
    """CPU time of the process in that time, all its threads."""
    looked_s: float = 0.0
    """Of that time, in which it was seen whether threads waited for a core."""
    waited_s: float = 0.0
    """In which they did."""
    began_s: float = 0.0
    """The first was sent; monotonic clock of the run."""
    ended_s: float = 0.0
    """The last was over."""
    latencies: Histogram = ()
    """Seconds."""
    first_bytes: Histogram = ()
    """Seconds."""
    sizes: Histogram = ()
    """Bytes."""


NO_REQUESTS: Final = RequestLog()


@dataclass(frozen=True)
class LoneRequests:
    """A few requests of the same objects, one at a time, while nothing else read them."""

    small_bytes: int
    small_s: float
    """Each, on average: a storage under a limit answers in bursts."""
    large_bytes: int
    large_s: float
    count: int
    """Of the large ones."""


@dataclass(frozen=True)
class Percentiles:
    """Of a figure over all requests, in the figure's unit."""

    mean: float
    """Exact."""
    p50: float
    """Within 3 %, as the others."""
    p95: float
    """Within 3 %."""
    p99: float
    """Within 3 %."""


@dataclass(frozen=True)
class RequestFit:
    """A straight line through size and time of all requests: what each takes at the least, and
    what its bytes add. As they were while the run went on, beside each other."""

    latency_intercept_s: float
    """Of a request without bytes."""
    bandwidth: float | None
    """Bytes/s of one request once its bytes flow; ``None`` when they add no time."""
    r2: float
    """0..1 of the variance of the times that the line explains."""
    latency_share: float
    """0..1 of the requests' time that is not their bytes'."""
    latency_share_interval: tuple[float, float]
    """95 %."""


@dataclass(frozen=True)
class RequestStats:
    """The requests that a run made of storage, warm-up included."""

    count: int
    bytes: int
    requests_per_s: float
    """From the first to the last."""
    in_flight: float
    """Requests under way at the same time, all workers together, on average from the first to the
    last (Little's law)."""
    at_once: float
    """Requests that one worker has under way at the same time, while it has any."""
    size: Percentiles
    """Bytes."""
    latency_s: Percentiles
    """Seconds from sending to the last byte, retries included."""
    first_byte_s: Percentiles | None
    """Seconds from sending to the first byte; ``None``: not known of most."""
    retries: int
    throttled: int
    """Answers that asked to slow down."""
    errors: int
    """Requests given up; in no other figure."""
    lost: int
    """Requests that were not counted."""
    client_cpu_s: float | None
    """CPU time per request, of the whole process while it waited for its store; ``None``: not
    seen."""
    client_share: float | None
    """That CPU time over the time waited: 1 is one core kept busy."""
    core_wait_share: float | None
    """0..1 of the time waited, in which a thread of the process wanted a core and had none;
    ``None``: not known."""
    fit: RequestFit | None
    """``None``: not told apart, see ``fit_missing``."""
    fit_missing: str
    """Why there is no ``fit``; empty when there is one."""
    source: Source = "measured"
