"""The probe on a disk whose speed is known."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pipeprof.probe.concurrency_ramp import ProbeSpec, probe
from pipeprof.probe.result import ProbeResult
from pipeprof.probe.target import open_target
from pipeprof.units import format_duration, format_rate
from tests.lab.disk import evict, slow_disk

pytestmark = pytest.mark.lab


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "file"
    path.write_bytes(os.urandom(64 << 20))
    evict(path)
    return path


def probed(file: Path, seconds: float, *blocks: int) -> ProbeResult:
    target = open_target(str(file))
    try:
        return probe(
            target, ProbeSpec(str(file), seconds, blocks, most_in_flight=8, feed_seconds=0)
        )
    finally:
        target.close()


@pytest.mark.parametrize("bytes_per_s", [20_000_000, 60_000_000])
def test_bandwidth(file, bytes_per_s, record_truth):
    with slow_disk(file.parent, bytes_per_s=bytes_per_s):
        found = probed(file, 14.0, 1 << 20).limits
    assert found is not None
    record_truth("probe of a throttled disk: bandwidth", format_rate(bytes_per_s),
         format_rate(found.bytes_per_s))  # fmt: skip
    assert found.bytes_per_s == pytest.approx(bytes_per_s, rel=0.05)


def test_latency(file, record_truth):
    """One request at a time takes 5 ms: on the mean, since the kernel lets a slice's worth of them
    through at once, and the next one then waits for the next slice, of 0.1 s at most."""
    with slow_disk(file.parent, requests_per_s=200):
        found = probed(file, 12.0, 4096).limits
    assert found is not None
    alone = found.latency
    record_truth("probe of a throttled disk: mean latency", "5 ms", format_duration(alone.mean_s))
    assert alone.mean_s == pytest.approx(0.005, rel=0.05)
    assert alone.requests_per_s * alone.mean_s == pytest.approx(1, rel=0.05), "one at a time"
    assert alone.p50_s < alone.mean_s < alone.p99_s <= alone.most_s < 0.15
    assert alone.p50_s <= alone.p95_s <= alone.p99_s


@pytest.mark.parametrize("requests_per_s", [200, 1000])
def test_requests(file, requests_per_s, record_truth):
    with slow_disk(file.parent, requests_per_s=requests_per_s):
        found = probed(file, 14.0, 4096).limits
    assert found is not None
    record_truth("probe of a throttled disk: requests/s", f"{requests_per_s}",
         f"{found.requests_per_s:.1f}")  # fmt: skip
    assert found.requests_per_s == pytest.approx(requests_per_s, rel=0.05)
