"""Compute the figures of a run's requests from histograms and sums."""

from __future__ import annotations

from math import sqrt

from pipeprof.analyze.profile.intervals import quantile_places, student_t
from pipeprof.model import Histogram, Percentiles, RequestFit, RequestLog, RequestStats

_LEAST_REQUESTS = 8
"""Fewest requests for a line through them."""
_LEAST_SIZE_DEVIATION = 0.25
"""Smallest relative deviation of the sizes. With less, a few unusual ones determine the line."""
_MOST_LATENCY_SHARE = 1.1
"""Largest credible share of latency. Beyond it larger requests were faster, so that something
other than size made the times differ."""


def request_stats(log: RequestLog) -> RequestStats | None:
    """Return the figures of ``log``, or ``None`` when no request was observed. ``fit_missing`` is a
    code, which `analyze.wording.storage` replaces by a sentence."""
    if not (log.count or log.failed):
        return None
    passed_s = log.ended_s - log.began_s
    fit, missing = _fit(log)
    return RequestStats(
        count=log.count,
        bytes=log.bytes,
        requests_per_s=log.count / passed_s if passed_s > 0 else 0.0,
        in_flight=log.seconds / passed_s if passed_s > 0 else 0.0,
        at_once=log.seconds / log.busy_s if log.busy_s > 0 else 0.0,
        size=_percentiles(log.sizes, log.bytes, log.count),
        latency_s=_percentiles(log.latencies, log.seconds, log.count),
        first_byte_s=(
            _percentiles(log.first_bytes, log.first_byte_s, log.first_byte_count)
            if 2 * log.first_byte_count > log.count else None
        ),
        retries=log.retries,
        throttled=log.throttled,
        errors=log.failed,
        lost=log.lost,
        client_cpu_s=log.store_cpu_s / log.count if log.store_s > 0 and log.count else None,
        client_share=log.store_cpu_s / log.store_s if log.store_s > 0 else None,
        core_wait_share=log.waited_s / log.looked_s if log.looked_s > 0 else None,
        fit=fit,
        fit_missing=missing,
    )  # fmt: skip


def _percentiles(histogram: Histogram, total: float, count: int) -> Percentiles:
    """Return mean and percentiles of ``count`` values, whose sum is ``total``; 0 for no values."""
    if not count:
        return Percentiles(0.0, 0.0, 0.0, 0.0)
    if len(histogram) == 1:  # the spread within a bin is unknown
        return Percentiles(*[total / count] * 4)
    values, counts = zip(*histogram, strict=True)
    p50, p95, p99 = (float(values[place]) for place in quantile_places(counts, 0.50, 0.95, 0.99))
    return Percentiles(total / count, p50, p95, p99)


def _fit(log: RequestLog) -> tuple[RequestFit | None, str]:
    """Fit a line through size and time by least squares; or return the code of why not."""
    count = log.count
    if count < _LEAST_REQUESTS:
        return None, "few-requests"
    size, seconds = log.bytes / count, log.seconds / count
    size_variance = max(0.0, log.size_squares / count - size**2)
    if not size or not seconds or sqrt(size_variance) < _LEAST_SIZE_DEVIATION * size:
        return None, "equal-sizes"
    variance = max(0.0, log.seconds_squares / count - seconds**2)
    slope = (log.size_seconds / count - size * seconds) / size_variance
    explained = slope**2 * size_variance
    error = sqrt(max(0.0, variance - explained) / size_variance / (count - 2))
    share = 1 - slope * size / seconds
    half = student_t(count - 2) * error * size / seconds
    if share - half > _MOST_LATENCY_SHARE:
        return None, "larger-are-faster"
    low, middle, high = (min(1.0, max(0.0, each)) for each in (share - half, share, share + half))
    fit = RequestFit(
        latency_intercept_s=max(0.0, seconds - slope * size),
        bandwidth=1 / slope if slope > 0 else None,
        r2=min(1.0, explained / variance) if variance > 0 else 1.0,
        latency_share=middle,
        latency_share_interval=(low, high),
    )
    return fit, ""
