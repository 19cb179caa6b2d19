"""The user chooses a client, and the results name it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from torch.utils.data import DataLoader

import pipeprof
from pipeprof.cli.app import run
from tests.s3.conftest import TRIED, needs_obstore
from tests.s3.relay import Relay

pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def data(bucket: Path, relay: Relay) -> str:
    for name in ("a", "b"):
        (bucket / f"{name}.csv").write_bytes(b"id\n" + b"1\n" * 4_000)
    return f"s3://{bucket.name}"


@pytest.mark.parametrize(
    ("chosen", "told"),
    [(None, "obstore" if "obstore" in TRIED else "s3fs"), *((name, name) for name in TRIED)],
)
def test_a_probe_names_the_client(
    chosen: str | None, told: str, data: str, capsys: Captured
) -> None:
    choice = ["--s3-client", chosen] if chosen else []
    quick = ["--seconds", "1", "--block", "4KiB", "--in-flight", "1", "--feed", "0", "--json"]
    assert run(["probe", data, *quick, *choice]) == 0
    found = json.loads(capsys.readouterr().out)["pipeprof probe"]
    assert told in found["client"]
    assert found["notes"][-1] == f"S3 was read by {told}."


def test_a_sweep_notes_the_client(data: str, tmp_path: Path, capsys: Captured) -> None:
    quick = ["--workers", "0", "--step-ms", "1", "--trial-time", "0.1", "--warmup-time", "0.05"]
    choice = ["--s3-client", "pyarrow", "--out", str(tmp_path / "out")]
    assert run(["sweep", data, *quick, *choice, "--full"]) == 0
    assert "S3 was read by pyarrow." in capsys.readouterr().out
    profile = json.loads((tmp_path / "out" / "trial-000.json").read_text())
    assert "S3 was read by pyarrow." in profile["notes"]


@needs_obstore
@pytest.mark.parametrize("num_workers", [0, 1])
def test_a_profile_counts_retries(
    num_workers: int, data: str, relay: Relay, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "4")
    dataset = pipeprof.open_dataset(data, batch_size=100)
    plain: Any = DataLoader(dataset, batch_size=None, num_workers=num_workers)
    loader = pipeprof.wrap(plain)
    relay.faults.extend(["slow down", "slow down", "reset"])
    assert len(list(loader)) == 80
    profile = loader.profile()
    assert "S3 was read by obstore." in profile.notes
    assert profile.requests is not None
    assert (profile.requests.retries, profile.requests.throttled) == (3, 2)
    assert profile.requests.errors == 0
