"""`pipeprof.tune` and ``pipeprof run --tune`` in each framework: the losses stay the same."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.integrations.environments import (
    folder_of,
    plain,
    run_changed,
    train_longer,
    train_under_run,
    with_examples,
)
from tests.integrations.test_frameworks import SCRIPTS

pytestmark = pytest.mark.integrations


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_tuned_loader(script: str, tmp_path: Path) -> None:
    """Batches and losses stay the same, whoever rebuilds or contains the loader."""
    bare = train_longer(tmp_path, "main", script, "plain")
    answer = train_longer(tmp_path, "main", script, "tune")
    assert answer.losses == bare.losses
    assert re.search(r"before +num_workers=2", answer.stdout), answer.stdout
    assert re.search(r"kept$", answer.stdout, re.MULTILINE), answer.stdout


PREDICTS = """
import lightning, pipeprof, torch, toy
from lightning_trainer import Model

class Predicting(Model):
    def predict_step(self, batch, number):
        return self.net(batch)

    def test_step(self, batch, number):
        self.net(batch)

loader = toy.loader()
tuned = pipeprof.tune(loader)
trainer = lightning.Trainer(accelerator="cpu", logger=False, enable_progress_bar=False)
of_both = [torch.cat(trainer.predict(Predicting(toy.Clock()), each)) for each in (loader, tuned)]
assert torch.equal(*of_both)
trainer.test(Predicting(toy.Clock()), tuned)
"""


def test_lightning_predicts_and_tests_with_a_tuned_loader(tmp_path: Path) -> None:
    """For that it makes another loader of the same type."""
    done = run_changed(PREDICTS, tmp_path)
    assert done.returncode == 0, done.stderr


RANKS = """
import sys, toy
tunes = sys.argv[1] == "tune"
toy.SAMPLES *= 15
import lightning, pipeprof
from lightning_trainer import Model

clock, loader = toy.Clock(), toy.loader(shuffle=True)
lightning.seed_everything(1)
loader = pipeprof.tune(loader) if tunes else loader
trainer = lightning.Trainer(
    accelerator="cpu", devices=2, strategy="ddp", max_epochs=2, logger=False,
    enable_progress_bar=False, enable_checkpointing=False,
)
trainer.fit(Model(clock), loader)
found = loader.tuning() if tunes else None
with open(f"{sys.argv[0]}.{trainer.global_rank}", "w") as file:
    print(clock.losses, file=file)
    print(found and found.before and found.chosen, file=file)
"""


def test_all_ranks_of_lightning_are_tuned_as_one(tmp_path: Path) -> None:
    """It makes each rank another loader, with a sampler of its own."""
    script = tmp_path / "ranks.py"
    script.write_text(RANKS)
    found = {}
    for mode in ("plain", "tune"):
        command = [str(folder_of("main") / "python"), "-W", "ignore", str(script), mode]
        done = subprocess.run(command, env=with_examples(), capture_output=True, timeout=240)
        assert done.returncode == 0, done.stderr[-4000:]
        found[mode] = [Path(f"{script}.{rank}").read_text().splitlines() for rank in (0, 1)]
    assert [losses for losses, _ in found["plain"]] == [losses for losses, _ in found["tune"]]
    assert found["plain"][0] != found["plain"][1]
    settings = {chosen for _, chosen in found["tune"]}
    assert len(settings) == 1
    assert "num_workers" in settings.pop()


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_that_is_tuned_and_not_edited(script: str, tmp_path: Path) -> None:
    answer = train_under_run("main", script, tmp_path, options=("--tune",))
    assert answer.losses == plain("main", script).losses
    assert "was not measured" not in answer.stderr
