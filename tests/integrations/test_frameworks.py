"""Each framework's smallest training, with its released package: as it is, and profiled in every
possible way. Losses are the same, profiles are whole, and verdicts agree with the script's clock.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest

from tests.docs.reader import blocks
from tests.integrations.environments import (
    EXAMPLES,
    ROOT,
    Answer,
    folder_of,
    plain,
    train,
    train_under_run,
    with_examples,
)
from tests.support.env import UNWATCHED

pytestmark = pytest.mark.integrations

WHOLE = {"fetch", "collate", "transfer", "wait", "step"}
HOST = {"wait", "step"}
TRAINERS = ("lightning_trainer.py", "transformers_trainer.py", "accelerate_loop.py")
SCRIPTS = (*TRAINERS, "lightning_fabric.py")
KINDS = {
    "stateful": ("main", WHOLE),
    "webdataset": ("main", WHOLE),
    "datasets": ("main", WHOLE),
    "streaming": ("streaming", WHOLE),
    "litdata": ("streaming", WHOLE),
    "nodes": ("main", HOST),
    "grain": ("main", HOST),
    "spdl": ("main", HOST),
}
"""Loaders of other libraries: their environment, and the stages that are observed of them."""
PAUSES = {
    "lightning_trainer.py": {"validation"},
    "transformers_trainer.py": {"evaluation", "checkpoint"},
    "accelerate_loop.py": {"checkpoint"},
    "lightning_fabric.py": {"checkpoint"},
}
"""What the frameworks do between two steps of these trainings, by their own words."""


def check(answer: Answer, bare: Answer, stages: Collection[str], name: str = "train") -> None:
    assert answer.losses == bare.losses
    profile = answer.profiles[name]
    assert set(stages) <= profile["stages"].keys()
    assert sum(epoch["batches"] for epoch in profile["epochs"]) == len(answer.losses)
    assert profile["lost_records"] == 0
    assert profile["diagnosis"]["verdict"] == "starved"
    # the clock counts the framework's own work between two steps, too, which is no wait, and is
    # most of that time on a slow machine
    starved = profile["diagnosis"]["starved_fraction"]
    assert 0.4 * answer.waited < starved < answer.waited + 0.05


def pauses(profile: dict[str, Any]) -> set[str]:
    kinds = (profile["pauses"] or {"kinds": []})["kinds"]
    return {each["kind"]["name"] for each in kinds if each["kind"]["evidence"] == "framework"}


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_wrapped_loader(script: str) -> None:
    check(train("main", script, "wrap"), plain("main", script), WHOLE)


@pytest.mark.parametrize("script", TRAINERS)
def test_a_callback(script: str) -> None:
    answer = train("main", script, "callback")
    name = "loader 1" if script == "accelerate_loop.py" else "train"
    check(answer, plain("main", script), WHOLE, name)
    assert pauses(answer.profiles[name]) == PAUSES[script]


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_that_is_not_edited(script: str, tmp_path: Path) -> None:
    answer = train_under_run("main", script, tmp_path)
    name = next(
        name for name, each in answer.profiles.items()
        if sum(epoch["batches"] for epoch in each["epochs"]) == len(answer.losses)
    )  # fmt: skip
    check(answer, plain("main", script), WHOLE, name)
    assert pauses(answer.profiles[name]) == PAUSES.get(script, set())


@pytest.mark.parametrize("kind", KINDS)
def test_loaders_of_other_libraries(kind: str) -> None:
    environment, stages = KINDS[kind]
    answer = train(environment, "other_loaders.py", "wrap", kind)
    check(answer, plain(environment, "other_loaders.py", kind), stages)


@pytest.mark.parametrize(
    ("kind", "stage"), [("nodes", "slow"), ("grain", "<lambda>"), ("spdl", "slow")]
)
def test_the_slow_stage_of_a_loader_that_works_in_threads_is_named(kind: str, stage: str) -> None:
    profile = train("main", "other_loaders.py", "wrap", kind).profiles["train"]
    assert profile["diagnosis"]["bottleneck"] == "pipeline"
    assert f"its stage {stage} is busy" in profile["diagnosis"]["headline"]
    (found,) = [each for each in profile["pipeline"] if each["name"] == stage]
    assert found["items"] == 320
    assert found["concurrency"] == 2


@pytest.mark.parametrize("kind", ["stateful", "webdataset", "datasets"])
def test_loaders_of_other_libraries_in_a_script_that_is_not_edited(kind: str, tmp_path) -> None:
    answer = train_under_run("main", "other_loaders.py", tmp_path, kind)
    (name,) = answer.profiles
    check(answer, plain("main", "other_loaders.py", kind), WHOLE, name)


@pytest.mark.parametrize("name", ["lightning", "transformers", "accelerate", "ray"])
def test_what_the_guide_imports_exists(name: str) -> None:
    code = blocks((ROOT / "docs" / "guides" / "frameworks.md").read_text(), "python")
    lines = [line for block in code for line in block.splitlines() if f".{name} import" in line]
    assert len(lines) == 1
    command = [str(folder_of("main") / "python"), "-W", "ignore", "-c", lines[0]]
    assert subprocess.run(command, timeout=120).returncode == 0


def test_the_validation_of_a_lightning_trainer_has_a_profile_of_its_own() -> None:
    profile = train("main", "lightning_trainer.py", "callback").profiles["validation"]
    assert profile["stages"].keys() >= WHOLE


SHARDS = """
import pipeprof
from datasets import Dataset
from datasets.distributed import split_dataset_by_node
from torch.utils.data import DataLoader

rows = Dataset.from_dict({"row": list(range(400))}).to_iterable_dataset(num_shards=SHARDS)
if RANKS > 1:
    rows = split_dataset_by_node(rows, rank=0, world_size=RANKS)
loader = pipeprof.wrap(DataLoader(rows, batch_size=4, num_workers=2), whole=True)
list(loader)
print(*(each.code for each in loader.profile().findings))
"""


@pytest.mark.parametrize(
    ("shards", "ranks", "code"),
    [(1, 1, "workers-without-data"), (3, 2, "every-rank-reads-all"), (2, 1, None)],
)
def test_shards_of_hugging_face_that_cannot_be_divided(shards, ranks, code) -> None:
    script = SHARDS.replace("SHARDS", str(shards)).replace("RANKS", str(ranks))
    command = [str(folder_of("main") / "python"), "-W", "ignore", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    found = {"workers-without-data", "every-rank-reads-all"} & set(done.stdout.split())
    assert found == ({code} if code else set())


FAILS = """
import sys
sys.argv[1:] = ["callback"]
import lightning_trainer

def fail(self, batch, number):
    if not self.trainer.sanity_checking:
        raise ValueError("validation broke")

lightning_trainer.Model.validation_step = fail
lightning_trainer.main()
"""


def test_an_exception_in_a_validation_comes_through_and_what_was_measured_is_reported() -> None:
    command = [str(folder_of("main") / "python"), "-W", "ignore", "-c", FAILS]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=120, cwd=EXAMPLES, env=UNWATCHED
    )
    assert done.returncode == 1
    assert done.stderr.rstrip().endswith("ValueError: validation broke")
    assert done.stderr.count("pipeprof: train\n") == 1


LOGS = """
import sys, time
sys.argv[1:] = ["callback"]
import lightning, lightning_trainer
from lightning.pytorch.loggers import Logger

class SlowLogger(Logger):
    name, version = "slow", 0

    def log_hyperparams(self, *arguments): pass

    def log_metrics(self, metrics, step):
        time.sleep(0.1)

def step(self, batch, number):
    loss = self.clock.loss(self.net, batch)
    self.log("loss", loss)
    return loss

Trainer = lightning.Trainer
options = {"logger": SlowLogger(), "log_every_n_steps": 10}
lightning.Trainer = lambda **given: Trainer(**given | options)
lightning_trainer.Model.training_step = step
lightning_trainer.main()
"""


def test_what_a_logger_of_lightning_takes_is_a_pause_by_its_name() -> None:
    command = [str(folder_of("main") / "python"), "-W", "ignore", "-c", LOGS]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=120, cwd=EXAMPLES, env=with_examples()
    )
    assert done.returncode == 0, done.stderr
    line = next(each for each in done.stdout.splitlines() if each.startswith('{"losses"'))
    profile = json.loads(line)["profiles"]["train"]
    (logging,) = (each for each in profile["pauses"]["kinds"] if each["kind"]["name"] == "logging")
    assert logging["kind"]["evidence"] == "framework"
    assert logging["count"] >= 6, "eight times in two epochs of 40 steps, but for warm-up"
    assert logging["total_s"] >= 0.1 * logging["count"]
