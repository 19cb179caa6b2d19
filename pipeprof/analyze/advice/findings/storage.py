"""Reading holds the loader up, and it is known what of storage does."""

from __future__ import annotations

from pipeprof.analyze.advice.findings.case import case
from pipeprof.analyze.advice.metrics import Facts
from pipeprof.analyze.advice.proposal import Figures
from pipeprof.analyze.profile.storage_bottleneck import BANDWIDTH, CLIENT, LATENCY
from pipeprof.analyze.thresholds import SEVERAL_REQUESTS, SMALL_REQUEST
from pipeprof.model import RequestStats

_SPARE_CORE = 0.5
"""Free for another client."""


def _requests_to_blame(facts: Facts, part: str) -> RequestStats | None:
    """The requests, where ``part`` of storage is what the accelerator waits for."""
    to_blame = facts.starved and facts.diagnosis.bottleneck == part
    return facts.requests if to_blame else None


@case("storage-latency-bound")
def latency_bound(facts: Facts) -> Figures | None:
    """Each request waits for its answer, and too few do so at a time.

    Seen by requests that are small (below 4 MB) or one after another, and by latency × requests
    that comes to the time that reading takes. Cured by larger requests, by more of them under way
    at a time (workers, or several a worker), or by a nearer storage.
    """
    requests = _requests_to_blame(facts, LATENCY)
    if requests is None:
        return None
    return {
        "small": requests.size.mean < SMALL_REQUEST,
        "serial": requests.at_once < SEVERAL_REQUESTS,
    }


@case("storage-bandwidth-bound")
def bandwidth_bound(facts: Facts) -> Figures | None:
    """The bytes themselves take the time.

    Seen by bytes a second that stay the same whatever is asked for. Cured by fewer bytes (only the
    columns in use, compression, a denser format) or a faster storage.
    """
    requests = _requests_to_blame(facts, BANDWIDTH)
    if requests is None:
        return None
    moved = requests.size.mean * requests.requests_per_s
    return {"moved": moved, "more": 2 * max(1, facts.workers)}


@case("s3-client-bound")
def client_bound(facts: Facts) -> Figures | None:
    """The store would answer sooner than its client can ask.

    Seen by the CPU time of each request in the client's process: it, and not the answer, is what a
    request takes. Cured by larger requests, a client that computes less, or more processes with one
    each.
    """
    requests = _requests_to_blame(facts, CLIENT)
    if requests is None:
        return None
    spare = facts.cores_left - facts.workers >= _SPARE_CORE
    return {
        "most": 1 / requests.client_cpu_s if requests.client_cpu_s else None,
        "more": max(2, facts.workers + 1) if spare else None,
    }
