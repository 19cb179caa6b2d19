"""The probe on a real S3 server behind a link whose rate and delay are known."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pipeprof.probe.concurrency_ramp import ProbeSpec, probe
from pipeprof.probe.result import Limits
from pipeprof.probe.target import open_target
from pipeprof.units import format_duration, format_rate
from tests.lab.conftest import RecordTruth
from tests.lab.far import BUCKET, NO_ETAG, Far, far_store
from tests.s3.conftest import lead_to
from tests.s3.server import serving

pytestmark = pytest.mark.lab

_SMALL = 4096


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """What the server serves."""
    bucket = tmp_path / "root" / BUCKET
    bucket.mkdir(parents=True)
    (bucket / "x.bin").write_bytes(os.urandom(32 << 20))
    return tmp_path


def probed(
    seconds: float, block_bytes: int, most_in_flight: int, client: str = "pyarrow"
) -> Limits:
    """By one process."""
    url = f"s3://{BUCKET}/x.bin"
    spec = ProbeSpec(url, seconds, (block_bytes,), most_in_flight, 1, feed_seconds=0)
    found = probe(open_target(url, {"s3_client": client}), spec).limits
    assert found is not None
    return found


@pytest.mark.link
@pytest.mark.parametrize("round_trip_ms", [0, 5, 20])
@pytest.mark.parametrize("mbit_per_s", [80, 400])
def test_bandwidth(
    mbit_per_s: int,
    round_trip_ms: int,
    data: Path,
    monkeypatch: pytest.MonkeyPatch,
    record_truth: RecordTruth,
) -> None:
    with far_store(mbit_per_s, round_trip_ms, data, monkeypatch) as far:
        found = probed(12.0, 2 << 20, most_in_flight=16)
    record_truth(
        f"probe of S3 behind {mbit_per_s} Mbit/s and {round_trip_ms} ms: bandwidth",
        format_rate(far.link.bytes_per_s),
        format_rate(found.bytes_per_s),
    )
    assert found.bytes_per_s == pytest.approx(far.link.bytes_per_s, rel=0.05)


@pytest.mark.link
def test_latency_and_requests(
    data: Path, monkeypatch: pytest.MonkeyPatch, record_truth: RecordTruth
) -> None:
    """Of a GET: one round trip, and what the server takes. That is known from a link without delay,
    asked as seldom as it is over this one: whoever has slept is slower at first. How many a second
    come to is known from as many plain sockets, side by side over the same link: each of their GETs
    takes a millisecond longer than that sum, for the server, the relay and they all sleep."""
    with far_store(400, 0, data, monkeypatch) as near:
        server_s = {rest: near.plain_get_s("x.bin", _SMALL, rest / 1000) for rest in (0, 5, 20)}
    for round_trip_ms, alone_s in server_s.items():
        truth_s = round_trip_ms / 1000 + alone_s
        with far_store(400, round_trip_ms, data, monkeypatch) as far:
            found = probed(6.0, _SMALL, most_in_flight=4)
            expected = side_by_side(far, 4)
        record_truth(
            f"probe of S3 behind 400 Mbit/s and {round_trip_ms} ms: latency, p50",
            format_duration(truth_s),
            format_duration(found.latency.p50_s),
        )
        assert abs(found.latency.p50_s - truth_s) <= 0.1 * truth_s + 0.001, "the bar is 0.3 ms more"
    record_truth(
        "the last, four at a time: requests/s", f"{expected:.0f}", f"{found.requests_per_s:.0f}"
    )
    assert found.requests_per_s == pytest.approx(expected, rel=0.15)


def side_by_side(far: Far, at_once: int) -> float:
    """Requests/s of so many sockets that ask for one object after another."""
    with ThreadPoolExecutor(at_once) as pool:
        took = [pool.submit(far.plain_get_s, "x.bin", _SMALL) for _ in range(at_once)]
        return sum(1 / each.result() for each in took)


def test_a_client_that_limits_is_distinguished_from_the_store(
    data: Path, monkeypatch: pytest.MonkeyPatch, record_truth: RecordTruth
) -> None:
    """s3fs, in Python, needs more than a millisecond of CPU a request; the server, with nothing in
    between, gives more to another client."""
    with serving(data / "root", data / "log", more=NO_ETAG) as server:
        lead_to(server.endpoint, monkeypatch)
        # where cores are slow to wake up, or others have them, the client leaves some of its own
        for _ in range(5):
            slow = probed(4.0, _SMALL, 32, client="s3fs")
            if slow.requests_client_bound:
                break
        other = probed(6.0, _SMALL, 8, client="pyarrow")
    record_truth(
        "probe of S3 on this machine, by s3fs: requests/s",
        f"≥ {other.requests_per_s:,.0f} (pyarrow)",
        f"{'≥ ' if slow.requests_client_bound else ''}{slow.requests_per_s:,.0f}",
    )
    assert slow.requests_client_bound
    assert other.requests_per_s > 1.2 * slow.requests_per_s
