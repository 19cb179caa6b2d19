"""The probe from several hosts on one S3 server: the rates of all links are known."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lab.conftest import RecordTruth
from tests.lab.hosts import payload, probed_from

pytestmark = pytest.mark.lab


@pytest.mark.parametrize(
    ("mbit_per_s", "slow"),
    [([40.0] * 4, None), ([40.0, 40.0, 10.0, 40.0], 2)],
    ids=["alike", "one slow"],
)
def test_limits_of_a_host_and_of_the_storage(
    mbit_per_s: list[float], slow: int | None, tmp_path: Path, record_truth: RecordTruth
) -> None:
    found = probed_from(mbit_per_s, 100.0, tmp_path)
    curve, truth = found["bandwidth"], {"per_host": payload(40.0), "total": payload(100.0)}
    what = f"probe from 4 hosts{', one slow' if slow is not None else ''}"
    for name, expected in truth.items():
        measured = curve[name]["value"]
        record_truth(f"{what}: {name}, MB/s", f"{expected / 1e6:.2f}", f"{measured / 1e6:.2f}")
        assert measured == pytest.approx(expected, rel=0.05)
    assert curve["knee"] == pytest.approx(2.5, rel=0.07)
    assert [each["host"] for each in found["slow"]] == (
        [] if slow is None else [found["names"][slow]]
    )
    for each in found["slow"]:
        record_truth(f"{what}: the slow one", f"{payload(10.0) / 1e6:.2f}",
                     f"{each['bytes_per_s'] / 1e6:.2f}")  # fmt: skip
        assert each["bytes_per_s"] == pytest.approx(payload(10.0), rel=0.07)
