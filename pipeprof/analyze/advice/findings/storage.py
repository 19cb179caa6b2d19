"""Reading holds the loader up, and it is known what of storage does."""

from __future__ import annotations

from pipeprof.analyze.advice.findings.case import Seen, case
from pipeprof.analyze.advice.metrics import Facts
from pipeprof.analyze.advice.roofline_estimate import helpful_workers
from pipeprof.analyze.profile.storage_bottleneck import BANDWIDTH, CLIENT, LATENCY
from pipeprof.model import RequestStats
from pipeprof.units import capital, counted, format_bytes, format_duration, format_rate

_SMALL = 4e6
"""Bytes below which a request's latency outweighs its transfer on any storage worth its name."""
_SERIAL = 1.5
"""Requests that a worker has under way at a time: below it, one after another."""
_SPARE_CORE = 0.5
"""Free for another client."""


def _seen(facts: Facts, part: str) -> RequestStats | None:
    """The requests, where ``part`` of storage is what the accelerator waits for."""
    to_blame = facts.starved and facts.diagnosis.bottleneck == part
    return facts.requests if to_blame else None


@case("storage-latency-bound", "Waiting for answers of the storage")
def latency_bound(facts: Facts) -> Seen | None:
    """Each request waits for its answer, and too few do so at a time.

    Seen by requests that are small (below 4 MB) or one after another, and by latency × requests
    that comes to the time that reading takes. Cured by larger requests, by more of them under way
    at a time (workers, or several a worker), or by a nearer storage.
    """
    requests = _seen(facts, LATENCY)
    if requests is None:
        return None
    small, serial = requests.size.mean < _SMALL, requests.at_once < _SERIAL
    how = ", ".join(["small"] * small + ["one after another"] * serial)
    wanted = helpful_workers(facts)
    workers = f"num_workers={wanted} instead of {facts.workers}: more wait side by side. "
    larger = "Ask for more at once: many samples in one file or shard, larger reads. "
    beside = "Let each worker ask for several at a time, as open_dataset does. "
    return Seen(
        f"{_requests(facts, requests)}, {requests.in_flight:.1f} under way at a time. "
        f"{capital(facts.diagnosis.evidence)}.",
        f"{workers if wanted else ''}{larger if small else ''}{beside if serial else ''}"
        "Or keep the data on a nearer storage.",
        f": requests are {how}" if how else "",
    )


@case("storage-bandwidth-bound", "The storage gives no more bytes a second")
def bandwidth_bound(facts: Facts) -> Seen | None:
    """The bytes themselves take the time.

    Seen by bytes a second that stay the same whatever is asked for. Cured by fewer bytes (only the
    columns in use, compression, a denser format) or a faster storage.
    """
    requests = _seen(facts, BANDWIDTH)
    if requests is None:
        return None
    moved = requests.size.mean * requests.requests_per_s
    more = 2 * max(1, facts.workers)
    return Seen(
        f"{_requests(facts, requests)}, {format_rate(moved)} in all with "
        f"{requests.in_flight:.1f} under way at a time. {capital(facts.diagnosis.evidence)}.",
        "Move fewer bytes: read only the columns you use, compress, choose a denser format; or "
        "keep the data on a faster storage. Whether each reader or all together are held back, "
        f"one run cannot tell: try num_workers={more} instead of {facts.workers}. If samples/s "
        "stay, the storage is full.",
    )


@case("s3-client-bound", "The storage's client computes more than it waits")
def client_bound(facts: Facts) -> Seen | None:
    """The store would answer sooner than its client can ask.

    Seen by the CPU time of each request in the client's process: it, and not the answer, is what a
    request takes. Cured by larger requests, a client that computes less, or more processes with one
    each.
    """
    requests = _seen(facts, CLIENT)
    if requests is None:
        return None
    one = f"{1 / requests.client_cpu_s:,.0f} requests/s" if requests.client_cpu_s else "so many"
    spare = facts.cores_left - facts.workers >= _SPARE_CORE
    wanted = max(2, facts.workers + 1)
    workers = f"num_workers={wanted} instead of {facts.workers}: each has a client of its own. "
    return Seen(
        f"{_requests(facts, requests)}. {capital(facts.diagnosis.evidence)}. One process comes "
        f"to {one} at the most.",
        "Ask for more at once: many samples in one file or shard, larger reads. Use a client that "
        "computes less (for S3: obstore or pyarrow instead of s3fs). "
        f"{workers if spare else ''}A faster or nearer storage would not help.",
    )


def _requests(facts: Facts, requests: RequestStats) -> str:
    per_batch = facts.per_batch(facts.summary.sums["requests"])
    return (
        f"A batch takes {counted(per_batch, 'request')} of {format_bytes(requests.size.mean)}, "
        f"{format_duration(requests.latency_s.mean)} each"
    )
