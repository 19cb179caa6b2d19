"""`pipeprof sweep --on-error`: damaged data stops the sweep, or is skipped, counted and
reported."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pipeprof.cli.app import run
from pipeprof.model import Profile
from pipeprof.store import load

Captured = pytest.CaptureFixture[str]
QUICK = ["--workers", "0", "--step-ms", "0", "--trial-time", "0.05", "--warmup-time", "0.01"]


@pytest.fixture
def data(tmp_path: Path) -> str:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.csv").write_bytes(b"id,x\n" + b"1,2\n" * 500 + b"1\n" + b"1,2\n" * 500)
    (tmp_path / "data" / "b.csv").write_bytes(b"")
    return str(tmp_path / "data")


def test_damaged_data_stops_a_sweep(data: str, tmp_path: Path, capsys: Captured) -> None:
    assert run(["sweep", data, *QUICK, "--out", str(tmp_path / "out")]) == 1
    printed = capsys.readouterr().err
    assert printed.startswith(
        f"pipeprof: {data}/a.csv: row 501 after the header: Expected 2 columns"
    )
    assert printed.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.filterwarnings("ignore:left out")
def test_damaged_data_is_left_out_and_counted(data: str, tmp_path: Path, capsys: Captured) -> None:
    out = tmp_path / "out"
    options = [*QUICK, "--on-error", "skip", "--out", str(out)]
    assert run(["sweep", data, *options, "--json"]) == 0
    sweep = json.loads(capsys.readouterr().out)
    assert sweep["spec"]["on_error"] == "skip"
    assert any("on_error=skip" in note for note in sweep["notes"])
    profile = load(out / "trial-000.json")
    assert isinstance(profile, Profile)
    assert profile.source is not None
    skipped = profile.source.skipped
    assert skipped is not None
    assert skipped.rows > 0
    assert (skipped.parts, skipped.objects) == (0, 1)
    assert run(["report", str(out / "trial-000.json")]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert f"{skipped.rows:,} rows, 1 object left out" in shown


def test_a_value_that_is_none_of_the_two_is_refused(data: str, capsys: Captured) -> None:
    assert run(["sweep", data, "--on-error", "ignore"]) == 2
    assert "'ignore' is not one of 'fail', 'skip'" in capsys.readouterr().err
