"""Tell which part of the storage limits reading: its bandwidth, its latency or its client.

One run cannot always tell. Many concurrent readers slow down equally, whether each waits for its
own answer or all share a full link. A part is named only where the run has evidence for it;
otherwise the evidence says what is missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isnan, nan

from pipeprof.analyze.profile.run_summary import Summary
from pipeprof.analyze.profile.stage_times import RUN_QUEUE
from pipeprof.analyze.thresholds import MOSTLY, SEVERAL_REQUESTS, SLOWEST_LINK
from pipeprof.model import STORAGE_PARTS, DataSource, LoneRequests, RequestStats

BANDWIDTH, LATENCY, CLIENT = STORAGE_PARTS

_LEAST_REQUESTS = 5
"""Fewest requests that show what reading waits for."""
BUSY = 0.5
"""Share of a core that the client uses while its worker waits for the store. A client that uses
more is computing rather than waiting."""
_SHORT_OF_CORES = 0.5
"""Share of the reading time spent waiting for a core, beyond which other waits are hidden."""
_NOTABLE_CORE_WAIT = 0.2
"""Share of the reading time spent waiting for a core, from which the evidence mentions it."""
_MOST_CORE_WAIT = 0.9
"""The same share, beyond which the client's need of a free core cannot be derived from the rest."""
_MOST_OF_REQUEST, _LITTLE_OF_REQUEST = 0.55, 0.45
"""Shares of a request's time above which latency, and below which bandwidth dominates it. Between
them neither does."""
_SLOWED_DOWN = 2.0
"""Ratio of a request's time to that of a lone one, from which other requests slow it down."""
_NEAR_FULL = 0.7
"""Share of a lone request's bandwidth. Concurrent requests that move more together have filled
the link."""
_LONGEST_ANSWER_S = 0.5
"""Longest credible time to the first byte. A much longer request spends its time on its bytes."""
_FROM_FILES = 0.5
"""Share of the bytes asked of storage that read calls returned, from which they come from files."""


@dataclass(frozen=True)
class StorageBound:
    """The part of the storage that limits reading, and the evidence for it."""

    part: str | None
    """One of `STORAGE_PARTS`; ``None`` where the run does not show which."""
    evidence: str
    """Code of the reason for ``part``, or of the reason why there is none."""
    latency_s: float = nan
    """Latency of a request, whatever its size; NaN unknown."""
    bandwidth: float = nan
    """Bytes/s of a request once its bytes flow; NaN unknown."""
    figures: Mapping[str, object] = field(default_factory=dict)
    """Figures of the evidence by name, in addition to those of the requests."""


def storage_bound(
    summary: Summary,
    requests: RequestStats | None,
    lone: LoneRequests | None = None,
    source: DataSource | None = None,
) -> StorageBound:
    """Tell which part of the storage limits reading, if reading is the bottleneck. ``lone`` are
    timings of requests that were sent one by one after the run."""
    if requests is None:
        return StorageBound(None, "no-requests")
    if requests.count < _LEAST_REQUESTS:
        return StorageBound(None, "few-requests")
    busy, core_wait = client_share(summary, requests), core_wait_share(summary, requests)
    if busy >= BUSY and not core_wait > _MOST_CORE_WAIT:
        figures = {
            "busy": min(1.0, busy),
            "core_wait": core_wait if core_wait >= _NOTABLE_CORE_WAIT else None,
        }
        if _from_files(summary, source):
            return StorageBound(None, "copying", figures=figures)
        return StorageBound(CLIENT, "client", figures=figures)
    if core_wait >= _SHORT_OF_CORES:
        return StorageBound(None, "cores", figures={"core_wait": core_wait})
    for find_bound in (_by_first_byte, _by_sizes, _by_plausibility):
        bound = find_bound(requests)
        if bound is not None:
            return bound
    return _undecided(requests) if lone is None else _by_lone_requests(requests, lone)


def client_share(summary: Summary, requests: RequestStats) -> float:
    """CPU time of the process per second that it waited for its store, had a core always been free;
    NaN unknown."""
    if requests.client_share is None:
        return nan
    core_wait = core_wait_share(summary, requests)
    return requests.client_share / (
        1 - (0.0 if isnan(core_wait) else min(core_wait, _MOST_CORE_WAIT))
    )


def core_wait_share(summary: Summary, requests: RequestStats) -> float:
    """Share of the time waited for the store in which a core was missing, 0..1; NaN unknown."""
    if requests.core_wait_share is not None:
        return requests.core_wait_share
    return summary.share_of_fetch(RUN_QUEUE)


def _from_files(summary: Summary, source: DataSource | None) -> bool:
    """Whether the bytes come from files: by the data set's URL, or because read calls returned
    them, which clients of a network do not use."""
    if source is not None:
        return "://" not in source.url or source.url.startswith("file://")
    sums = summary.sums
    return sums["logical_bytes"] >= _FROM_FILES * sums["sampled_bytes"] > 0


def _by_first_byte(requests: RequestStats) -> StorageBound | None:
    """Compare the time to the first byte with the time of the whole request."""
    first = requests.first_byte_s
    if first is None or not requests.latency_s.mean:
        return None
    share, flowing_s = first.mean / requests.latency_s.mean, requests.latency_s.mean - first.mean
    bandwidth = requests.size.mean / flowing_s if flowing_s > 0 else nan
    if share >= _MOST_OF_REQUEST:
        return StorageBound(LATENCY, "first-byte", first.mean, bandwidth, {"share": share})
    if share <= _LITTLE_OF_REQUEST:
        return StorageBound(BANDWIDTH, "first-byte", first.mean, bandwidth, {"share": share})
    return None


def _by_sizes(requests: RequestStats) -> StorageBound | None:
    """Use the line through the sizes and times of the requests."""
    fit = requests.fit
    if fit is None:
        return None
    low, high = fit.latency_share_interval
    # a small request behind large ones waits for their bytes, and that looks like latency
    late = low >= MOSTLY and not _concurrent(requests)
    part = LATENCY if late else BANDWIDTH if high <= MOSTLY else None
    if part is None:
        return None
    bandwidth = nan if fit.bandwidth is None else fit.bandwidth
    return StorageBound(
        part, "sizes", fit.latency_intercept_s, bandwidth, {"low": 100 * low, "high": 100 * high}
    )


def _concurrent(requests: RequestStats) -> bool:
    """Whether requests may wait for each other's bytes."""
    return max(requests.in_flight, requests.at_once) >= SEVERAL_REQUESTS


def _by_plausibility(requests: RequestStats) -> StorageBound | None:
    """Rule out a bandwidth that no storage is as slow as, and a latency that none is as long as."""
    size, latency_s = requests.size.mean, requests.latency_s.mean
    at_once = max(requests.in_flight, requests.at_once)
    moved = size * at_once / latency_s if latency_s else 0.0
    if 0 < moved <= SLOWEST_LINK:
        return StorageBound(LATENCY, "no-full-link", latency_s, figures={"moved": moved})
    if latency_s > 2 * _LONGEST_ANSWER_S:
        return StorageBound(BANDWIDTH, "no-such-latency", bandwidth=size / latency_s)
    return None


def _by_lone_requests(requests: RequestStats, lone: LoneRequests) -> StorageBound:
    """Compare the requests with lone ones, which take their latency and the time of their bytes at
    full bandwidth."""
    flowing_s = max(lone.large_s - lone.small_s, 1e-9)
    bandwidth = (lone.large_bytes - lone.small_bytes) / flowing_s
    latency_s = max(0.0, lone.small_s - lone.small_bytes / bandwidth)
    size, alone_s = requests.size.mean, latency_s + requests.size.mean / bandwidth
    share, slowdown = latency_s / alone_s, requests.latency_s.mean / alone_s
    moved = requests.in_flight * size / requests.latency_s.mean
    figures = {"alone_s": alone_s, "share": share}
    full = slowdown >= _SLOWED_DOWN and moved >= _NEAR_FULL * bandwidth
    if share <= _LITTLE_OF_REQUEST or full:
        bandwidth /= max(1.0, slowdown)
        return StorageBound(BANDWIDTH, "lone-requests", latency_s, bandwidth, figures)
    if share >= _MOST_OF_REQUEST and slowdown < _SLOWED_DOWN:
        return StorageBound(LATENCY, "lone-requests", latency_s, bandwidth, figures)
    return StorageBound(None, "lone-requests", figures={**figures, "slowdown": slowdown})


def _undecided(requests: RequestStats) -> StorageBound:
    """Say what is missing to tell latency from bandwidth."""
    if requests.fit is None:
        return StorageBound(None, "no-fit")
    low, high = requests.fit.latency_share_interval
    figures = {"low": 100 * low, "high": 100 * high, "concurrent": _concurrent(requests)}
    return StorageBound(None, "wide-fit", figures=figures)
