"""The advice for loaders that work in threads is followed, with the released packages: the rate
rises as promised where a stage waits, and nothing is promised where it computes in Python."""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any

import pytest

from tests.integrations.environments import EXAMPLES, folder_of
from tests.support.env import UNWATCHED

pytestmark = pytest.mark.integrations

KINDS = ("nodes", "grain", "spdl")


def run(kind: str, work: str, threads: int) -> dict[str, Any]:
    """Run the example; its rates are those of its own clock."""
    script = str(EXAMPLES / "pipeline_stages.py")
    command = [str(folder_of("main") / "python"), "-W", "ignore", script, kind, work, str(threads)]
    env = UNWATCHED | {"PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=env)
    assert done.returncode == 0, done.stderr[-4000:]
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert answer["same"], "the batches differ from those without pipeprof"
    return answer


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.timed
def test_a_stage_that_waits_is_as_fast_as_promised_with_the_threads_that_were_advised(kind):
    before = run(kind, "waits", 2)
    (advice,) = before["profile"]["recommendations"]
    promised, threads = advice["predicted_samples_per_s"], int(advice["proposed"])
    assert f"={threads}" in advice["code"]
    # where system calls are slow, the library's own thread computes so much that no more than one
    # thread is added at a time
    assert threads >= 3
    after = run(kind, "waits", threads)
    assert after["rate"] > 1.3 * before["rate"]
    assert 0.7 * promised < after["rate"] < 1.6 * promised


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.timed
def test_threads_that_compute_in_python_are_promised_nothing_and_gain_nothing(kind):
    before = run(kind, "computes", 2)
    profile = before["profile"]
    assert profile["diagnosis"]["verdict"] == "starved"
    # on a busy machine the stage may wait too much for the interpreter to be the limit
    for advice in profile["recommendations"]:
        assert advice["predicted_samples_per_s"] is None
        assert advice["proposed"] in ("processes, or cheaper work", "cheaper work, or more cores")
    after = run(kind, "computes", 4)
    rates = [[each["rate"], each["bare_rate"]] for each in (before, after)]
    assert min(rates[1]) < 1.35 * max(rates[0])


@pytest.mark.parametrize("kind", ["nodes", "spdl"])
def test_pipeprof_run_measures_them_without_an_edit(kind, tmp_path):
    command = [
        str(folder_of("main") / "python"), "-m", "pipeprof", "run", "--out", str(tmp_path),
        str(EXAMPLES / "pipeline_stages.py"), kind, "waits", "2",
    ]  # fmt: skip
    env = UNWATCHED | {"PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=env)
    assert done.returncode == 0, done.stderr[-4000:]
    found = [json.loads(path.read_bytes()) for path in tmp_path.rglob("*.json")]
    names = {each["name"]: each for each in found if "schema" in each}
    assert len(names) == 2, "the script wraps one loader, and iterates another one bare"
    bare = next(each for name, each in names.items() if name != "loader")
    for profile in (names["loader"], bare):
        assert "read_image" in {stage["name"] for stage in profile["pipeline"]}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.timed
def test_timing_the_stages_costs_little(kind):
    answer = run(kind, "waits", 2)
    assert answer["rate"] > 0.9 * answer["bare_rate"]
