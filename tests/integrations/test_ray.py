"""Ray Train with two workers, each of which is profiled."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.integrations.environments import folder_of, plain, train, train_under_run
from tests.integrations.test_frameworks import WHOLE, pauses
from tests.support.env import UNWATCHED

HERE = Path(__file__).parent
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
import ray, sys, time

def train():
    import torch
    from torch.utils.data import DataLoader
    return sum(float(batch.sum()) for batch in DataLoader(torch.arange(320.0), batch_size=4))

@ray.remote(num_cpus=0.3)
class Trainer:
    def train(self):
        return train()

ray.init(*sys.argv[1:])  # the address of a cluster, or none
trainers = [Trainer.remote() for _ in range(2)]
task = ray.remote(num_cpus=0.3)(train).remote()
print(ray.get([task, *(each.train.remote() for each in trainers)]))
ray.kill(trainers[0])
time.sleep(1)  # it is dead when the driver ends
"""
SUMS = "[51040.0, 51040.0, 51040.0]\n"


def run_tasks(folder: Path, *command: str) -> str:
    """Run `TASKS` under `pipeprof run`, and return what is printed of it."""
    (folder / "tasks.py").write_text(TASKS)
    run = [str(folder_of("main") / "pipeprof"), "run", "--out", "out", "tasks.py"]
    done = subprocess.run(
        [*command, *run], cwd=folder, env=UNWATCHED, capture_output=True, text=True, timeout=240
    )
    assert (done.returncode, done.stdout) == (0, SUMS), done.stderr
    return done.stderr


def batches(folder: Path) -> list[int]:
    saved = (json.loads(file.read_text()) for file in folder.glob("*/process*/*.json"))
    return [each["epochs"][0]["batches"] for each in saved]


def test_workers_of_tasks_and_actors_save_before_ray_kills_them(tmp_path: Path) -> None:
    report = run_tasks(tmp_path)
    assert batches(tmp_path / "out") == [80, 80]
    assert report.count("the loader gives") == 2
    assert "1 process that it started left no profile for this report: it was killed" in report


def test_a_cluster_on_other_hosts_that_runs_already(tmp_path: Path) -> None:
    """The driver has another host name here, and another disk for the profiles."""
    (tmp_path / "out").mkdir()
    script = 'hostname driver; mount -t tmpfs none out; "$@"; status=$?; cp -r out received'
    flags = "-um" if os.geteuid() == 0 else "-rum"
    cluster = [str(folder_of("main") / "python"), str(HERE / "ray_cluster.py"), "1"]
    elsewhere = ["unshare", flags, "sh", "-c", f"{script}; exit $status", "sh"]
    report = run_tasks(tmp_path, *cluster, *elsewhere)
    assert batches(tmp_path / "received") == [80, 80]
    assert report.count("the loader gives") == 2
    assert "1 worker of Ray did not answer, and left no profile." in report


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
