"""`pipeprof sweep --formats` as a user runs it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pipeprof import formats
from pipeprof.cli.app import run
from pipeprof.cli.output import raise_if_starved
from pipeprof.errors import StarvedError
from tests.support.requirements import missing
from tests.sweep_samples import sample_conversion

QUICK = ["--workers", "0", "--step-ms", "1", "--trial-time", "0.1", "--warmup-time", "0.02",
         "--batch-size", "256"]  # fmt: skip


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("data")
    table = pa.record_batch({"id": pa.array(range(150_000), pa.int64())})
    encoder = formats.get("csv").encoder(table.schema)
    (folder / "x.csv").write_bytes(encoder.write(table) + encoder.finish())
    return str(folder)


def command(data: str, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "pipeprof", "sweep", data, *QUICK, *arguments]


def test_it_tells_what_converting_would_bring(
    data: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    arguments = ["--formats", "csv,parquet:zstd", "--sample", "1MB", "--row-group", "64KiB"]
    assert run(["sweep", data, *QUICK, *arguments, "--full", "--out", str(out)]) == 0
    shown = capsys.readouterr()
    assert "What would I gain by converting?" in shown.out
    assert "parquet:zstd, 64 KiB groups" in shown.out
    assert "the same, repeated" in shown.out
    assert "writing the sample as parquet:zstd, 64 KiB groups" in shown.err
    assert shown.err.count("samples/s") == 3, "a line a trial"
    saved = json.loads((out / "sweep.json").read_bytes())
    assert saved["spec"]["conversion"] == {
        "formats": ["csv", "parquet:zstd"],
        "storages": ["local"],
        "sample_bytes": 1_000_000,
        "row_group_bytes": [65536],
        "shard_bytes": [],
        "seed": 0,
    }
    assert 0.9e6 < saved["conversion"]["sample"]["ram_bytes"] <= 1e6
    assert os.listdir(tmp_path) == ["out"], "copies are gone"
    assert run(["report", str(out)]) == 0
    assert "What would I gain by converting?" in capsys.readouterr().out


def test_what_is_kept_is_told(
    data: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--formats", "parquet", "--storage", str(tmp_path), "--keep", "--json"]
    assert run(["sweep", data, *QUICK, *arguments, "--out", str(tmp_path / "out")]) == 0
    document = json.loads(capsys.readouterr().out)
    [copy] = document["conversion"]["copies"]
    assert document["conversion"]["kept"]
    assert sum(name.endswith(".parquet") for name in os.listdir(copy["url"])) == copy["objects"]


def test_only_the_data_as_it_is_is_judged() -> None:
    sweep = sample_conversion()
    own, *copies = sweep.trials
    fed = replace(sweep, trials=(replace(own, starved_fraction=0.01), *copies))
    assert max(trial.starved_fraction for trial in copies) > 0.5
    raise_if_starved(fed, "x", limit=0.05)
    with pytest.raises(StarvedError, match="clicks-csv"):
        raise_if_starved(sweep, "x", limit=0.05)


def test_ctrl_c_removes_what_was_written(data: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    arguments = ["--formats", "parquet,tfrecord", "--trial-time", "1", "--sample", "1MB"]
    running = subprocess.Popen(
        command(data, *arguments, "--workers", "1", "--out", str(out)),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    while not (out / "trial-000.json").exists():
        assert running.poll() is None, running.communicate()
        time.sleep(0.02)
    assert (tmp_path / "out-data").is_dir()
    os.killpg(running.pid, signal.SIGINT)
    _, printed = running.communicate(timeout=60)
    assert running.returncode == 130
    assert f"pipeprof sweep --resume {out}" in printed
    assert "Traceback" not in printed
    assert os.listdir(tmp_path) == ["out"]


def test_a_disk_that_fills_up_is_told_and_left_as_it_was(data: str, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    arguments = ["--formats", "tfrecord", "--storage", str(disk), "--out", str(tmp_path / "out")]
    mount = f"mount -t tmpfs -o size=2m tmpfs {disk} || exit 77"
    flags = "-m" if os.geteuid() == 0 else "-rm"
    ran = subprocess.run(
        ["unshare", flags, "sh", "-c", f'{mount}; "$@"; echo $?; ls -A {disk}', "sh",
         *command(data, *arguments)],
        capture_output=True, text=True,
    )  # fmt: skip
    if ran.returncode != 0:
        assert "mount" in ran.stderr or "unshare" in ran.stderr
        missing("a small disk cannot be mounted here")
    assert ran.stdout.split() == ["1"], "nothing is left on it"
    assert "cannot be written: the disk is full; about " in ran.stderr
    assert "Traceback" not in ran.stderr
    assert os.listdir(tmp_path) == ["disk"]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--formats", "orc"], 2, "'orc' is not a format; choose one of csv, parquet, tfrecord"),
        (["--formats", "parquet:brotli"], 2, "parquet cannot be compressed by 'brotli'"),
        (["--formats", "csv,,parquet"], 2, "an empty name between its commas"),
        (["--formats", "csv"], 2, "csv already, which copies are compared with"),
        (["--formats", "parquet", "--storage", "{tmp}/nowhere"], 2, "nowhere is no folder"),
        (["--formats", "parquet", "--storage", "nosuch://x"], 2, "nosuch://x/pipeprof-_out"),
        (["--formats", "parquet", "--storage", "/proc"], 1, "/proc/pipeprof-_out"),
        (["--formats", "parquet", "--sample", "4"], 2, "not one row fits into a sample of 4 B"),
        (["--formats", "parquet", "--sample", "0"], 2, "too small"),
        (["--formats", "parquet", "--row-group", "8MiB,many"], 2, "'many' is not a size"),
        (["--sample", "1MB"], 2, "--sample needs --formats"),
        (["--storage", "local"], 2, "--storage needs --formats"),
        (["{tmp}", "--formats", "parquet"], 2, "name one URL"),
    ],
)
def test_a_mistake_is_one_sentence_and_leaves_nothing(
    data: str,
    tmp_path: Path,
    arguments: list[str],
    code: int,
    words: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    given = [text.format(tmp=tmp_path) for text in arguments]
    assert run(["sweep", data, *QUICK, *given, "--out", str(tmp_path / "_out")]) == code
    shown = capsys.readouterr()
    assert words in shown.err
    assert "Traceback" not in shown.err
    assert os.listdir(tmp_path) == []


def test_data_without_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data/x.csv").write_text("id\n")
    arguments: list[Any] = ["--formats", "parquet", "--out", str(tmp_path / "out")]
    assert run(["sweep", str(tmp_path / "data"), *QUICK, *arguments]) == 1
    assert "holds no rows" in capsys.readouterr().err
    assert os.listdir(tmp_path) == ["data"]
