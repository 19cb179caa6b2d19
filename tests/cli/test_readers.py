"""`pipeprof readers`, and sweeps over readers."""

from __future__ import annotations

import json
import platform
from pathlib import Path

import pyarrow as pa
import pytest

import pipeprof
from pipeprof import formats
from pipeprof.cli.app import run
from pipeprof.errors import CorruptData, UsageError
from pipeprof.formats import readers
from pipeprof.report.document.wording import data_source
from tests.contracts.format_samples import encode

QUICK = ["--workers", "1", "--step-ms", "1", "--trial-time", "0.2", "--warmup-time", "0.05",
         "--batch-size", "64"]  # fmt: skip
Captured = pytest.CaptureFixture[str]


@pytest.fixture
def data(tmp_path: Path) -> str:
    folder = tmp_path / "data"
    folder.mkdir()
    for number in range(2):
        ids = range(1000 * number, 1000 * (number + 1))
        table = pa.table({"id": pa.array(ids), "x": pa.array([i / 4 for i in ids], pa.float32())})
        (folder / f"{number}.csv").write_bytes(encode(formats.get("csv"), table, batch_rows=500))
    return str(folder)


def ids(dataset: pipeprof.FileDataset) -> list[int]:
    return [number for batch in dataset for number in batch["id"].tolist()]


def test_what_is_installed_is_listed(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        readers, "installed_version", lambda name: None if name == "tf.data" else "1.2"
    )
    assert run(["readers"]) == 0
    printed = capsys.readouterr().out
    assert "polars       1.2            csv, parquet, arrow, jsonl\n" in printed
    assert "tf.data      not installed  tfrecord\n" in printed
    assert "Install with: pip install tensorflow" in printed
    assert run(["readers", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [each["name"] for each in listed] == ["own", *readers.READERS]
    assert listed[0]["formats"] == list(formats.FORMATS)


def test_a_data_set_by_another_reader(data: str) -> None:
    own = pipeprof.open_dataset(data)
    other = pipeprof.open_dataset(data, reader="python")
    assert ids(other) == ids(own) == list(range(2000))
    assert (own.source.reader, other.source.reader) == (None, "python")
    assert ids(pipeprof.open_dataset(f"python::{data}")) == list(range(2000))
    assert pipeprof.open_dataset(data, reader="own").source == own.source
    assert f"(csv by python {platform.python_version()}, 2 objects" in data_source(other.source)


def test_a_reader_that_cannot_be_used(data: str) -> None:
    with pytest.raises(UsageError, match="'pollars' is not a reader"):
        pipeprof.open_dataset(data, reader="pollars")
    (Path(data) / "0.csv").write_bytes(b"id,x\n1,2\n3\n")
    with pytest.raises(CorruptData, match=r"0\.csv: .*"):
        ids(pipeprof.open_dataset(data, reader="python"))


def test_a_sweep_over_readers(data: str, tmp_path: Path, capsys: Captured) -> None:
    out = tmp_path / "out"
    asked = ["sweep", data, "--reader", "own,python", *QUICK, "--out", str(out), "--json"]
    assert run(asked) == 0
    sweep = json.loads(capsys.readouterr().out)
    assert [trial["url"] for trial in sweep["trials"]] == [data, f"python::{data}"]
    profiles = [pipeprof.load(out / f"trial-00{number}.json") for number in range(2)]
    assert [profile.source.reader for profile in profiles] == [None, "python"]
    assert run(["report", str(out), "--full"]) == 0
    assert f"python::{data}" in capsys.readouterr().out.replace("\n", "")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--reader", "pollars"], "'pollars' is not a reader; choose one of own, polars"),
        (["--reader", "own,pillow", "--formats", "parquet"], "pillow decodes images, and copies"),
    ],
)
def test_wrong_usage(arguments: list[str], says: str, data: str, capsys: Captured) -> None:
    assert run(["sweep", data, *QUICK, *arguments]) == 2
    assert says in " ".join(capsys.readouterr().err.split())


def test_a_loader_of_ones_own_has_no_reader(capsys: Captured) -> None:
    assert run(["sweep", "--loader", "x:y", "--reader", "own"]) == 2
    assert "--reader needs URLs" in capsys.readouterr().err
