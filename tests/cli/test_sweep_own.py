"""`pipeprof sweep --loader` and `--script`: settings tried on what a user has already."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from pipeprof.cli.app import run
from pipeprof.store import load

MINE = """
import time
from torch.utils.data import DataLoader

class Sleeping:
    def __len__(self):
        return 240
    def __getitem__(self, index):
        time.sleep(0.005)
        return index

def make(num_workers, prefetch_factor=None):
    return DataLoader(Sleeping(), 4, num_workers=num_workers, prefetch_factor=prefetch_factor)

if __name__ == "__main__":
    for batch in make(1, 2):
        pass
"""


@pytest.fixture
def mine(tmp_path: Path) -> str:
    (tmp_path / "mine.py").write_text(MINE)
    return str(tmp_path / "mine.py")


@pytest.mark.timed
def test_settings_are_tried_on_a_loader_of_ones_own(
    mine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    quick = ["--workers", "0,2", "--trial-time", "0.3", "--warmup-time", "0.1"]
    arguments = ["--loader", f"{mine}:make", "--step-ms", "0", "--out", str(tmp_path / "out")]
    assert run(["sweep", *arguments, *quick, "--full"]) == 0
    printed = capsys.readouterr().out
    assert "loader: 0 workers, batch 4 → 2 workers, prefetch 2, batch 4" in printed
    assert "from mine import make\n\nloader = make(num_workers=2, prefetch_factor=2)" in printed
    assert "as-is requested" in printed
    [left] = load(tmp_path / "out/sweep.json").headspace.values()  # type: ignore[union-attr]
    assert left.gain > 2, "a step takes no time, a batch 10 ms"
    assert f"{left.gain:.1f}" in printed or f"{left.gain:,.0f}" in printed
    assert "if loading took no time" in printed
    assert run(["sweep", "--resume", str(tmp_path / "out")]) == 0, "nothing is left to do"


@pytest.mark.timed
def test_a_script_is_run_once_for_each_setting(
    mine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert run(["sweep", "--script", mine, "--workers", "1,2", "--out", str(out), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [trial["config"]["num_workers"] for trial in document["trials"]] == [1, 2]
    assert document["environment"]["accelerator"] == f"the step of your own script, {mine}"
    [advice] = document["advice"]
    assert advice["recommendation"]["code"] == (
        f"pipeprof run --set num_workers=2,prefetch_factor=2 {mine}  # or in the script:\n"
        "DataLoader(…, num_workers=2, prefetch_factor=2)"
    )
    profile = load(out / "trial-001.json")
    assert profile.stages["fetch"].mean_s >= 0.020  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("data --loader mine.py:make", "exclude each other"),
        ("--loader mine.py:make --script mine.py", "exclude each other"),
        ("--loader mine.py:Sleeping", "does not take num_workers"),
        ("--loader mine.py:make --batch-size 4,8", "does not take batch_size"),
        ("--loader mine.py:make --accelerator resnet50/h100", "give --batch-size"),
        ("--loader mine.py:make --formats csv", "are for data sets"),
        ("--script mine.py --step-ms 3", "has a training step of its own"),
        ("--script nowhere.py", "nowhere.py is no file"),
    ],
)
def test_what_cannot_be_tried_is_refused_before_anything_is_written(
    mine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: str, says: str
) -> None:
    words = arguments.replace("mine.py", mine).split()
    assert run(["sweep", *words, "--out", str(tmp_path / "out")]) == 2
    assert says in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


WARNING = """
import warnings
from torch.utils.data import DataLoader

class Unlabelled:
    def __len__(self):
        return 1024
    def __getitem__(self, index):
        warnings.warn("labels are missing")
        return index

def make(num_workers):
    return DataLoader(Unlabelled(), 16, num_workers=num_workers)

def clip(batch):
    warnings.warn("values are clipped")
    return batch
"""


def test_what_ones_own_code_warns_of_is_shown_once_a_sweep(tmp_path: Path) -> None:
    """Not once a trial, nor once a worker."""
    mine, data = tmp_path / "warning.py", tmp_path / "data"
    mine.write_text(WARNING)
    data.mkdir()
    (data / "rows.csv").write_text("a,b\n" + "1,2\n" * 512)
    quick = "--workers 0,1,2 --trial-time 0.1 --warmup-time 0.05 --step-ms 1"
    for arguments, words in [
        (["--loader", f"{mine}:make"], "labels are missing"),
        ([data, "--transform", f"{mine}:clip", "--batch-size", "16"], "values are clipped"),
    ]:
        done = subprocess.run(
            [sys.executable, "-m", "pipeprof", "sweep", *arguments, *quick.split(),
             "--out", tmp_path / words],
            capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert done.stderr.count("samples/s") == 3, "three trials"
        assert done.stderr.count(f"UserWarning: {words}") == 1
