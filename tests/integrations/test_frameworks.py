"""Each framework's smallest training, with its released package: as it is, and profiled in every
possible way. Losses are the same, profiles are whole, and verdicts agree with the script's clock.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest

from tests.docs.reader import blocks
from tests.integrations.environments import (
    ROOT,
    Answer,
    folder_of,
    plain,
    run_changed,
    train,
    train_under_run,
)

pytestmark = pytest.mark.integrations

WHOLE = {"fetch", "collate", "transfer", "wait", "step"}
TRAINERS = ("lightning_trainer.py", "transformers_trainer.py", "accelerate_loop.py")
SCRIPTS = (*TRAINERS, "lightning_fabric.py")
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


def test_what_the_guide_imports_exists() -> None:
    code = blocks((ROOT / "docs" / "guides" / "frameworks.md").read_text(), "python")
    lines = [line for block in code for line in block.splitlines() if "integrations." in line]
    imported = sorted(re.findall(r"integrations\.(\w+) import", "\n".join(lines)))
    assert imported == ["accelerate", "lightning", "ray", "transformers"]
    command = [str(folder_of("main") / "python"), "-W", "ignore", "-c", "\n".join(lines)]
    assert subprocess.run(command, timeout=120).returncode == 0


def test_the_validation_of_a_lightning_trainer_has_a_profile_of_its_own() -> None:
    profile = train("main", "lightning_trainer.py", "callback").profiles["validation"]
    assert profile["stages"].keys() >= WHOLE


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


def test_an_exception_in_a_validation_comes_through_and_what_was_measured_is_reported(
    tmp_path: Path,
) -> None:
    done = run_changed(FAILS, tmp_path)
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


def test_what_a_logger_of_lightning_takes_is_a_pause_by_its_name(tmp_path: Path) -> None:
    done = run_changed(LOGS, tmp_path)
    assert done.returncode == 0, done.stderr
    line = next(each for each in done.stdout.splitlines() if each.startswith('{"losses"'))
    profile = json.loads(line)["profiles"]["train"]
    (logging,) = (each for each in profile["pauses"]["kinds"] if each["kind"]["name"] == "logging")
    assert logging["kind"]["evidence"] == "framework"
    assert logging["count"] >= 6, "eight times in two epochs of 40 steps, but for warm-up"
    assert logging["total_s"] >= 0.1 * logging["count"]
