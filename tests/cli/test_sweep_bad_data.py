"""`pipeprof sweep` over data that cannot be read: a sentence, and the trials before it are kept."""

import os

import pyarrow as pa
import pytest

from pipeprof import formats
from pipeprof.cli.app import run
from tests.cli.sweeping import QUICK


def damaged(folder, kind):
    """A data set that cannot be read, and what the message must say."""
    parquet = formats.get("parquet").encoder(pa.schema([("id", pa.int64())]))
    whole = parquet.write(pa.record_batch({"id": pa.array([1, 2, 3])})) + parquet.finish()
    if kind == "mixed":
        (folder / "a.parquet").write_bytes(whole)
        (folder / "b.csv").write_text("id\n1\n")
        return "mixes formats"
    if kind == "truncated":
        (folder / "a.parquet").write_bytes(whole[:-3])
        return "a.parquet"
    if kind == "another format":
        (folder / "a.parquet").write_text("id\n1\n2\n")
        return "a.parquet is named like parquet, but it is not"
    (folder / "a.csv").symlink_to(folder / "gone")
    return "a.csv"


@pytest.mark.parametrize("kind", ["mixed", "truncated", "another format", "dangling link"])
def test_a_data_set_that_cannot_be_read(tmp_path, kind, capsys):
    (tmp_path / "data").mkdir()
    words = damaged(tmp_path / "data", kind)
    assert run(["sweep", str(tmp_path / "data"), *QUICK, "--out", str(tmp_path / "out")]) == 1
    shown = capsys.readouterr()
    assert words in shown.err
    assert shown.err.count("\n") == 1, "one sentence"
    assert not (tmp_path / "out").exists()


def test_a_trial_that_fails_keeps_those_before_it(tmp_path, capsys):
    (tmp_path / "data").mkdir()
    (tmp_path / "data/x.csv").write_text("id\n" + "1\n" * 6_000_000 + "no number\n")
    out = str(tmp_path / "out")
    sizes = ["--workers", "0", "--batch-size", "8,200000", "--warmup-time", "0"]
    assert run(["sweep", f"{tmp_path}/data", *QUICK, *sizes, "--step-ms", "0", "--out", out]) == 1
    shown = capsys.readouterr()
    assert (
        f"1 finished trials are saved; once the cause is fixed, continue with: pipeprof sweep "
        f"--resume {out}" in shown.err
    )
    assert "'id'" in shown.err
    assert sorted(os.listdir(out)) == ["sweep.json", "trial-000.json"]
