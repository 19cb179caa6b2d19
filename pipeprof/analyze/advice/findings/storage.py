"""Findings about storage whose latency, bandwidth or client limits the loader."""

from __future__ import annotations

from pipeprof.analyze.advice.findings.case import case
from pipeprof.analyze.advice.metrics import Facts
from pipeprof.analyze.advice.proposal import Figures
from pipeprof.analyze.profile.storage_bottleneck import BANDWIDTH, CLIENT, LATENCY
from pipeprof.analyze.thresholds import SEVERAL_REQUESTS, SMALL_REQUEST
from pipeprof.model import RequestStats

_SPARE_CORES = 0.5
"""Free cores from which on another client can be added."""


def _limiting_requests(facts: Facts, part: str) -> RequestStats | None:
    """Return the requests where ``part`` of storage is the bottleneck; else ``None``."""
    limited = facts.starved and facts.diagnosis.bottleneck == part
    return facts.requests if limited else None


@case("storage-latency-bound")
def latency_bound(facts: Facts) -> Figures | None:
    """Each request waits for its answer, and too few requests are concurrent.

    Reported when the latency of all requests adds up to the time that reading takes. The finding
    says whether requests are small (below 4 MB), or made one after another.

    Fix: make larger requests or more concurrent ones (more workers, or several per worker), or use
    a nearer storage.
    """
    requests = _limiting_requests(facts, LATENCY)
    if requests is None:
        return None
    serial = requests.at_once < SEVERAL_REQUESTS
    return {"small": requests.size.mean < SMALL_REQUEST, "serial": serial}


@case("storage-bandwidth-bound")
def bandwidth_bound(facts: Facts) -> Figures | None:
    """The storage delivers as many bytes per second as it can.

    Reported when the bytes per second stay the same whatever is requested.

    Fix: read fewer bytes (only the columns in use, compression, a denser format), or use a faster
    storage.
    """
    requests = _limiting_requests(facts, BANDWIDTH)
    if requests is None:
        return None
    moved = requests.size.mean * requests.requests_per_s
    return {"moved": moved, "more": 2 * max(1, facts.workers)}


@case("s3-client-bound")
def client_bound(facts: Facts) -> Figures | None:
    """The storage client computes too much per request; the storage could answer faster.

    Reported when the CPU time of a request in the client's process, not the wait for the answer,
    takes most of the request's time.

    Fix: make larger requests, use a client that computes less, or use more processes with one
    client each.
    """
    requests = _limiting_requests(facts, CLIENT)
    if requests is None:
        return None
    spare = facts.cores_left - facts.workers >= _SPARE_CORES
    return {
        "most": 1 / requests.client_cpu_s if requests.client_cpu_s else None,
        "more": max(2, facts.workers + 1) if spare else None,
    }
