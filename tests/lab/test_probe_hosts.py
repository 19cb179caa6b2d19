"""The probe from several hosts on one S3 server: the rates of all links are known."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lab.conftest import RecordTruth
from tests.lab.hosts import payload, probed_from

pytestmark = [pytest.mark.lab, pytest.mark.link]


def test_limits_of_a_host_and_of_the_storage(tmp_path: Path, record_truth: RecordTruth) -> None:
    """Four hosts, one of them slow. `make bench-probe` draws clusters at random."""
    found = probed_from([40.0, 40.0, 10.0, 40.0], 100.0, tmp_path)
    curve, what = found["bandwidth"], "probe from 4 hosts"
    for name, expected in {"per_host": payload(40.0), "total": payload(100.0)}.items():
        measured = curve[name]["value"]
        record_truth(f"{what}: {name}, MB/s", f"{expected / 1e6:.2f}", f"{measured / 1e6:.2f}")
        assert measured == pytest.approx(expected, rel=0.05)
    assert curve["knee"] == pytest.approx(2.5, rel=0.07)
    (slow,) = found["slow"]
    assert slow["host"] == found["names"][2]
    expected, measured = payload(10.0), slow["bytes_per_s"]
    record_truth(f"{what}: the slow one", f"{expected / 1e6:.2f}", f"{measured / 1e6:.2f}")
    assert measured == pytest.approx(expected, rel=0.07)
