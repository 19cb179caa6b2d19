"""The reader tf.data, with the released TensorFlow."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pyarrow as pa
import pytest

from pipeprof import formats
from tests.contracts.format_samples import encode
from tests.integrations.environments import ROOT, folder_of
from tests.support.env import UNWATCHED

pytestmark = [pytest.mark.integrations, pytest.mark.timeout(300)]


def run(*command: str) -> subprocess.CompletedProcess[str]:
    program = str(folder_of("tensorflow") / command[0])
    return subprocess.run([program, *command[1:]], capture_output=True, text=True, timeout=240,
                          cwd=ROOT, env=UNWATCHED)  # fmt: skip


def test_it_gives_the_rows_of_our_own_decoder() -> None:
    done = run("python", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "tf.data",
               "tests/formats/test_readers.py")  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:]
    assert "5 passed" in done.stdout


def test_a_sweep_in_the_main_process_and_in_workers(tmp_path: Path) -> None:
    """Workers are spawned, since TensorFlow's threads run in the main process by then."""
    data = tmp_path / "data"
    data.mkdir()
    for number in range(2):
        table = pa.table({"id": range(1000), "x": pa.array([0.5] * 1000, pa.float32())})
        (data / f"{number}.tfrecord").write_bytes(encode(formats.get("tfrecord"), table))
    done = run("pipeprof", "sweep", str(data), "--reader", "own,tf.data", "--workers", "0,1",
               "--step-ms", "1", "--trial-time", "0.3", "--warmup-time", "0.1", "--batch-size",
               "64", "--exhaustive", "--out", str(tmp_path / "out"), "--json")  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    trials = json.loads(done.stdout)["trials"]
    by_tf = [
        (each["url"].startswith("tf.data::"), each["config"]["num_workers"]) for each in trials
    ]
    assert by_tf == [(False, 0), (False, 1), (True, 0), (True, 1)]
    assert all(each["samples_per_s"] > 0 for each in trials)
