"""From requests of known size and time to what a profile says of them."""

from math import nan

import pytest

from pipeprof.analyze.profile.request_stats import request_stats
from pipeprof.analyze.wording.storage import explain_missing_fit
from pipeprof.measure.request_counts import RequestCounts, RequestTotals
from pipeprof.measure.requests import begin_noting, end_noting, note_request
from pipeprof.model import NO_REQUESTS, RequestLog, RequestStats

MS = 1e-3


def log_of(*requests: tuple[float, float, float, int], **noted: int) -> RequestLog:
    """Of (start, first byte, end, size), in seconds and bytes."""
    counts, totals = RequestCounts(), RequestTotals()
    begin_noting()
    for start_s, first_byte_s, end_s, size in requests:
        note_request(start_s, first_byte_s, end_s, size, **noted)
    counts.count_pending()
    end_noting()
    totals.add(counts)
    return totals.log()


def stats_of(*requests: tuple[float, float, float, int], **noted: int) -> RequestStats:
    stats = request_stats(log_of(*requests, **noted))
    assert stats is not None
    return stats


def in_turn(sizes: list[int], latency_s: float, bandwidth: float) -> list[tuple[float, ...]]:
    """Requests one after another, 1 ms apart."""
    found, now = [], 0.0
    for size in sizes:
        end_s = now + latency_s + size / bandwidth
        found.append((now, nan, end_s, size))
        now = end_s + MS
    return found


def test_of_a_run_without_requests_nothing_is_said():
    assert request_stats(NO_REQUESTS) is None


def test_rates_and_what_is_under_way():
    # two at a time for 4 s, then one for 2 s more, after a second of nothing
    stats = stats_of((0, nan, 4, 100), (0, nan, 4, 300), (5, nan, 7, 200))
    assert (stats.count, stats.bytes) == (3, 600)
    assert stats.requests_per_s == pytest.approx(3 / 7)
    assert stats.in_flight == pytest.approx(10 / 7), "Little's law: 10 s of requests in 7 s"
    assert stats.at_once == pytest.approx(10 / 6), "and in the 6 s in which there was any"
    assert stats.size.mean == 200
    assert stats.latency_s.mean == pytest.approx(10 / 3)


def test_percentiles_are_within_three_percent():
    requests = [(float(n), n + n * 1e-3, n + n * 2e-3, n * 1000) for n in range(1, 1001)]
    stats = stats_of(*requests)
    for figures, unit in ((stats.latency_s, 2e-3), (stats.first_byte_s, 1e-3), (stats.size, 1000)):
        assert (figures.p50, figures.p95, figures.p99) == pytest.approx(
            (500 * unit, 950 * unit, 990 * unit), rel=0.035
        )
    equal = stats_of(*[(0.0, nan, 0.003, 4000)] * 10)
    assert equal.size.p99 == 4000, "exact where all are alike"


def test_the_first_byte_is_told_where_it_is_known_of_most():
    known, unknown = (0.0, 0.25, 1.0, 10), (0.0, nan, 1.0, 10)
    assert stats_of(known, known, unknown).first_byte_s.mean == 0.25
    assert stats_of(known, unknown).first_byte_s is None


def test_trouble_is_counted():
    stats = stats_of((0, nan, 1, 10), (0, nan, 1, 10), retries=2, throttled=1)
    assert (stats.retries, stats.throttled, stats.errors) == (4, 2, 0)


def test_a_line_through_sizes_and_times_gives_latency_and_bandwidth():
    sizes = [100_000 * (1 + n % 10) for n in range(50)]
    fit = stats_of(*in_turn(sizes, 5 * MS, 100e6)).fit
    assert fit.latency_intercept_s == pytest.approx(5 * MS)
    assert fit.bandwidth == pytest.approx(100e6)
    assert fit.r2 == pytest.approx(1.0)
    # 5 ms of 5 + 5.5
    assert fit.latency_share == pytest.approx(5 / 10.5)
    assert fit.latency_share_interval == pytest.approx((5 / 10.5,) * 2, abs=1e-6)


def test_what_varies_for_other_reasons_makes_it_less_sure():
    sizes = [100_000 * (1 + n % 10) for n in range(50)]
    noisy = [
        (start_s, nan, end_s + (n * 7 % 11) * 5 * MS, size)
        for n, (start_s, _, end_s, size) in enumerate(in_turn(sizes, 5 * MS, 100e6))
    ]
    fit = stats_of(*noisy).fit
    low, high = fit.latency_share_interval
    assert fit.r2 < 0.2
    assert low < (5 + 25) / (10.5 + 25) < high
    assert high - low > 0.1


def test_bytes_that_take_no_time_have_no_bandwidth():
    sizes = [1000 * (1 + n % 10) for n in range(50)]
    fit = stats_of(*[(0.0, nan, (20 + n % 3) * MS, size) for n, size in enumerate(sizes)]).fit
    low, _ = fit.latency_share_interval
    assert low > 0.9
    slower_when_small = [(0.0, nan, 20 * MS - size * 1e-7, size) for size in sizes]
    assert stats_of(*slower_when_small).fit.bandwidth is None


@pytest.mark.parametrize(
    ("sizes", "why"),
    [
        ([8 << 20] * 50, "all requests are of about one size"),
        ([8 << 20, 4 << 20], "only 2 requests came"),
    ],
)
def test_where_no_line_can_be_laid_it_says_why(sizes, why):
    stats = explain_missing_fit(stats_of(*in_turn(sizes, 5 * MS, 100e6)))
    assert (stats.fit, stats.fit_missing) == (None, why)
