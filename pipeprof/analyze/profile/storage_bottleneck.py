"""Which part of storage holds a loader up: its bandwidth, its latency, or the client that asks it.

One run cannot always tell. Many readers beside each other slow down alike, whether each waits for
an answer of its own or all share a full link; so a part is named only where something of the run
tells it apart, and else it is said what is lacking.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isnan, nan

from pipeprof.analyze.profile.run_summary import Summary
from pipeprof.analyze.profile.stage_times import RUN_QUEUE
from pipeprof.analyze.thresholds import SLOWEST_LINK
from pipeprof.model import STORAGE_PARTS, DataSource, LoneRequests, RequestStats
from pipeprof.units import counted, format_bytes, format_duration, format_rate, percent

BANDWIDTH, LATENCY, CLIENT = STORAGE_PARTS

_LEAST = 5
"""Requests to judge by."""
BUSY = 0.5
"""Of a core, while a worker waits for its store: the client computes rather than waits."""
_SHORT_OF_CORES = 0.5
"""Of the time in which a store is read: what else it waits for cannot be seen behind that."""
_WORTH_TELLING = 0.2
_BLIND = 0.9
"""Of that time: what the client would need if cores were free cannot be reckoned from the rest."""
_MOSTLY, _HARDLY = 0.55, 0.45
_SEVERAL = 1.5
"""Requests under way at a time, from which on they may wait for each other."""
_SLOWED = 2.0
"""Times as long as a request takes alone: others are in its way."""
_NEAR = 0.7
"""Of what one request alone reaches, read by all together: there is not much more to be had."""
_LONGEST_ANSWER_S = 0.5
"""To the first byte: a request that takes much longer has spent it on its bytes."""
_FROM_FILES = 0.5
"""Of the bytes asked of storage, returned by read calls: they are files', not a network's."""


@dataclass(frozen=True)
class StorageBound:
    """What is to blame where reading is."""

    part: str | None
    """One of `STORAGE_PARTS`; ``None``: it cannot be told."""
    evidence: str
    """Why it is that, or why it cannot be told."""
    latency_s: float = nan
    """Of a request, whatever its size."""
    bandwidth: float = nan
    """Bytes/s of one request, once its bytes flow."""


def storage_bound(
    summary: Summary,
    requests: RequestStats | None,
    lone: LoneRequests | None = None,
    source: DataSource | None = None,
) -> StorageBound:
    """For a run of which reading is said to be the bottleneck."""
    if requests is None:
        return StorageBound(None, "requests were not seen, which would tell what holds it up")
    if requests.count < _LEAST:
        seen = counted(requests.count, "request")
        return StorageBound(None, f"{seen} are too few to tell what holds it up")
    busy, queued = client_share(summary, requests), core_wait_share(summary, requests)
    if busy >= BUSY and not queued > _BLIND:
        if _from_files(summary, source):
            return _copying(requests, busy)
        return _computing(requests, busy, queued)
    if queued >= _SHORT_OF_CORES:
        return StorageBound(
            None, f"{percent(queued)} of the time in which storage is read, a core is waited for"
        )
    for judge in (_by_first_byte, _by_sizes, _by_plausibility):
        found = judge(requests)
        if found is not None:
            return found
    if lone is not None:
        return _by_lone_requests(requests, lone)
    return StorageBound(None, _untold(requests))


def client_share(summary: Summary, requests: RequestStats) -> float:
    """CPU time of the process over the time it waited for its store, had a core always been free;
    NaN unknown."""
    if requests.client_share is None:
        return nan
    queued = core_wait_share(summary, requests)
    return requests.client_share / (1 - (0.0 if isnan(queued) else min(queued, _BLIND)))


def core_wait_share(summary: Summary, requests: RequestStats) -> float:
    """0..1 of the time waited for the store, in which it was a core that was missing; NaN
    unknown."""
    if requests.core_wait_share is not None:
        return requests.core_wait_share
    return summary.share_of_fetch(RUN_QUEUE)


def _from_files(summary: Summary, source: DataSource | None) -> bool:
    """Whether there is no client: the data set says so, or the bytes came by read calls, which
    clients of a network do not use."""
    if source is not None:
        return "://" not in source.url or source.url.startswith("file://")
    sums = summary.sums
    return sums["logical_bytes"] >= _FROM_FILES * sums["sampled_bytes"] > 0


def _copying(requests: RequestStats, busy: float) -> StorageBound:
    return StorageBound(
        None,
        f"reading is {percent(min(1.0, busy))} computing, "
        f"{format_duration(requests.client_cpu_s or 0.0)} of CPU a request: copies from memory or "
        "by the kernel, not a wait for storage",
    )


def _computing(requests: RequestStats, busy: float, queued: float) -> StorageBound:
    each = format_duration(requests.client_cpu_s or 0.0)
    return StorageBound(
        CLIENT,
        f"the client spends {each} of CPU on a request, which is {percent(min(1.0, busy))} of a "
        f"core while its store is read{_less_waiting(queued)}",
    )


def _less_waiting(queued: float) -> str:
    known = queued >= _WORTH_TELLING
    return f", not counting the {percent(queued)} in which it waits for a core" if known else ""


def _by_first_byte(requests: RequestStats) -> StorageBound | None:
    first = requests.first_byte_s
    if first is None or not requests.latency_s.mean:
        return None
    share, flowing_s = first.mean / requests.latency_s.mean, requests.latency_s.mean - first.mean
    part = LATENCY if share >= _MOSTLY else BANDWIDTH if share <= _HARDLY else None
    if part is None:
        return None
    return StorageBound(
        part,
        f"{percent(share)} of a request's {format_duration(requests.latency_s.mean)} is the wait "
        "for its first byte",
        first.mean,
        requests.size.mean / flowing_s if flowing_s > 0 else nan,
    )


def _by_sizes(requests: RequestStats) -> StorageBound | None:
    fit = requests.fit
    if fit is None:
        return None
    low, high = fit.latency_share_interval
    # a small request behind large ones waits for their bytes, and that looks like latency
    late = low >= 0.5 and not _concurrent(requests)
    part = LATENCY if late else BANDWIDTH if high <= 0.5 else None
    if part is None:
        return None
    return StorageBound(
        part,
        f"by the sizes and times of {counted(requests.count, 'request')}, "
        f"{percent(fit.latency_share)} of their time (95 %: {low * 100:.0f}–{high * 100:.0f} %) "
        "does not depend on how many bytes they ask for",
        fit.latency_intercept_s,
        nan if fit.bandwidth is None else fit.bandwidth,
    )


def _concurrent(requests: RequestStats) -> bool:
    return max(requests.in_flight, requests.at_once) >= _SEVERAL


def _by_plausibility(requests: RequestStats) -> StorageBound | None:
    size, latency_s = requests.size.mean, requests.latency_s.mean
    at_once = max(requests.in_flight, requests.at_once)
    moved = size * at_once / latency_s if latency_s else 0.0
    if 0 < moved <= SLOWEST_LINK:
        return StorageBound(
            LATENCY,
            f"requests of {format_bytes(size)} take {format_duration(latency_s)}, at "
            f"{format_rate(moved)} in all, which fills no link",
            latency_s,
        )
    if latency_s > 2 * _LONGEST_ANSWER_S:
        return StorageBound(
            BANDWIDTH,
            f"requests of {format_bytes(size)} take {format_duration(latency_s)}, longer than a "
            "storage takes to answer",
            bandwidth=size / latency_s,
        )
    return None


def _by_lone_requests(requests: RequestStats, lone: LoneRequests) -> StorageBound:
    """Alone, a request takes its latency, and what its bytes take of the whole bandwidth."""
    flowing_s = max(lone.large_s - lone.small_s, 1e-9)
    bandwidth = (lone.large_bytes - lone.small_bytes) / flowing_s
    latency_s = max(0.0, lone.small_s - lone.small_bytes / bandwidth)
    size, alone_s = requests.size.mean, latency_s + requests.size.mean / bandwidth
    share, slowed = latency_s / alone_s, requests.latency_s.mean / alone_s
    moved = requests.in_flight * size / requests.latency_s.mean
    seen = (
        f"alone, a request of {format_bytes(size)} takes {format_duration(alone_s)}, "
        f"{percent(share)} of it whatever its size"
    )
    if share <= _HARDLY or (slowed >= _SLOWED and moved >= _NEAR * bandwidth):
        return StorageBound(BANDWIDTH, seen, latency_s, bandwidth / max(1.0, slowed))
    if share >= _MOSTLY and slowed < _SLOWED:
        return StorageBound(LATENCY, seen, latency_s, bandwidth)
    return StorageBound(
        None, f"{seen}, and {slowed:.1f} times as long beside the others; that tells neither"
    )


def _untold(requests: RequestStats) -> str:
    if requests.fit is None:
        return (
            f"one run cannot tell latency from bandwidth here: {requests.fit_missing}, and when "
            "the first byte came is not known; a run with other num_workers or request sizes would"
        )
    low, high = requests.fit.latency_share_interval
    beside = ", or waiting for each other's bytes" if _concurrent(requests) else ""
    return (
        "one run cannot tell latency from bandwidth here: by their sizes, "
        f"{low * 100:.0f}–{high * 100:.0f} % of the requests' time is latency (95 %){beside}"
    )
