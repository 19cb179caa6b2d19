"""Ray Train with two workers, each of which is profiled."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.integrations.environments import folder_of, plain, train, train_under_run
from tests.integrations.test_frameworks import WHOLE, pauses
from tests.support.env import UNWATCHED

SCRIPT = "ray_train.py"
pytestmark = [pytest.mark.integrations, pytest.mark.timeout(600)]


def is_whole(profile: dict[str, Any], batches: int, wrapped: bool = False) -> bool:
    """Ranks wait for one another in each step, so the script's clock is no measure of a loader."""
    assert profile["stages"].keys() >= WHOLE
    assert sum(epoch["batches"] for epoch in profile["epochs"]) == batches
    assert profile["lost_records"] == 0
    if not wrapped:
        assert pauses(profile) == {"report", "checkpoint"}
    codes = {each["code"]: each["evidence"] for each in profile["findings"]}
    assert "prefetch_factor=4" in codes["options-lost"], "Ray Train keeps only what it knows"
    return True


def test_a_wrapped_loader() -> None:
    answer = train("main", SCRIPT, "wrap")
    assert answer.losses == plain("main", SCRIPT).losses
    assert is_whole(answer.profiles["train"], len(answer.losses), wrapped=True)


def test_a_callback_brings_together_the_profiles_of_all_workers(tmp_path: Path) -> None:
    answer = train("main", SCRIPT, "callback", str(tmp_path))
    assert answer.losses == plain("main", SCRIPT).losses
    for worker in range(2):
        (file,) = (tmp_path / f"worker{worker}").iterdir()
        assert is_whole(json.loads(file.read_text()), len(answer.losses))


def test_a_driver_that_is_not_edited(tmp_path: Path) -> None:
    answer = train_under_run("main", SCRIPT, tmp_path)
    assert answer.losses == plain("main", SCRIPT).losses
    assert set(answer.profiles) == {"worker0/loader-1.json", "worker1/loader-1.json"}
    assert all(is_whole(each, len(answer.losses)) for each in answer.profiles.values())
    assert "iterated no DataLoader" not in answer.stderr
    assert "left no profile" not in answer.stderr


TASKS = """
import ray, sys

@ray.remote(num_cpus=1)
def train(file):
    import pipeprof, torch
    from torch.utils.data import DataLoader
    loader = pipeprof.wrap(DataLoader(torch.arange(320.0), batch_size=4))
    total = sum(float(batch.sum()) for batch in loader)
    loader.profile().save(file)
    return total

ray.init(num_cpus=2, include_dashboard=False)
print(ray.get([train.remote(file) for file in sys.argv[1:]]))
ray.shutdown()
"""


def test_workers_of_tasks_are_killed_which_is_said_with_what_to_do(tmp_path: Path) -> None:
    script, files = tmp_path / "tasks.py", [tmp_path / "1.json", tmp_path / "2.json"]
    script.write_text(TASKS)
    program = [str(folder_of("main") / "pipeprof"), "run", "--out", str(tmp_path / "out")]
    done = subprocess.run(
        [*program, str(script), *map(str, files)],
        env=UNWATCHED, capture_output=True, text=True, timeout=240,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "[51040.0, 51040.0]\n"), done.stderr
    assert "2 processes that it started left no profile for this report: they were" in done.stderr
    assert "Ray kills the workers of its tasks and actors." in done.stderr
    saved = [json.loads(file.read_text()) for file in files]
    assert [each["epochs"][0]["batches"] for each in saved] == [80, 80]


@pytest.mark.parametrize("part", ["production_wait", "collate"])
def test_an_iterator_of_ray_data_says_by_its_own_figures_what_it_waits_for(part: str) -> None:
    answer, bare = train("main", "ray_data.py", "wrap", part), plain("main", "ray_data.py", part)
    assert answer.losses == bare.losses
    profile = answer.profiles["train"]
    waited = {each["name"]: each["waited_s"] for each in profile["pipeline"]}
    assert max(waited, key=waited.__getitem__) == part
    assert {each["measured_by"] for each in profile["pipeline"]} == {"library"}
    assert profile["diagnosis"]["bottleneck"] == "pipeline"
    assert f"for its stage {part}, by the library's figures" in profile["diagnosis"]["headline"]
