"""`pipeprof sweep --on ray`: the trials run on a node of a cluster, and survive the driver."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from pipeprof.bench_data.generate import GenerateSpec, generate
from tests.integrations.environments import folder_of
from tests.support.env import UNWATCHED

pytestmark = [pytest.mark.integrations, pytest.mark.timeout(300)]

HERE = Path(__file__).parent


def test_a_killed_driver_loses_no_finished_trial(tmp_path: Path) -> None:
    data, folder = tmp_path / "data", tmp_path / "sweep"
    generate(GenerateSpec(str(data), "tabular", "csv", 4_000_000))
    python = str(folder_of("main") / "python")
    command = [python, str(HERE / "ray_cluster.py"), "2", python, str(HERE / "ray_sweep.py")]
    done = subprocess.run(
        [*command, str(data), str(folder)],
        capture_output=True, text=True, env=UNWATCHED, timeout=280,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "trial-000.json trial-001.json" in done.stderr, "when the driver was killed"
    found = json.loads(done.stdout)
    assert [trial["config"]["num_workers"] for trial in found["trials"]] == [0, 1, 2]
    assert found["advice"]
    hosts = {
        json.loads((folder / trial["profile"]).read_text())["environment"]["host"]
        for trial in found["trials"]
    }
    assert hosts == {found["environment"]["host"]}
