"""The probe on a disk whose speed is known."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pipeprof.probe.ramp import ProbeSpec, probe
from pipeprof.probe.result import ProbeResult
from pipeprof.probe.target import open_target
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
        return probe(target, ProbeSpec(str(file), seconds, blocks, most_in_flight=8))
    finally:
        target.close()


@pytest.mark.parametrize("bytes_per_s", [20_000_000, 60_000_000])
def test_bandwidth(file, bytes_per_s):
    with slow_disk(file.parent, bytes_per_s=bytes_per_s):
        found = probed(file, 16.0, 1 << 20).limits
    assert found is not None
    assert found.bytes_per_s == pytest.approx(bytes_per_s, rel=0.05)


@pytest.mark.parametrize("requests_per_s", [200, 1000])
def test_requests(file, requests_per_s):
    with slow_disk(file.parent, requests_per_s=requests_per_s):
        found = probed(file, 16.0, 4096).limits
    assert found is not None
    assert found.requests_per_s == pytest.approx(requests_per_s, rel=0.05)
