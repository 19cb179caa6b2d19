"""Launchers within a script: `pipeprof run` measures each rank, and reports on the job."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.integrations.environments import folder_of
from tests.support.env import UNWATCHED

pytestmark = [pytest.mark.integrations, pytest.mark.timeout(300)]

DATA = """
import sys, time, torch
from torch.utils.data import DataLoader, Dataset

class Napping(Dataset):
    def __len__(self):
        return 120
    def __getitem__(self, index):
        time.sleep(0.004)
        return torch.tensor([float(index)])
"""
LIGHTNING = (
    DATA
    + """
import lightning.pytorch as pl

class Model(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)
    def training_step(self, batch, index):
        return self.layer(batch).sum()
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 1e-4)

if __name__ == "__main__":
    quiet = dict(logger=False, enable_checkpointing=False, enable_progress_bar=False)
    trainer = pl.Trainer(
        accelerator="cpu", devices=2, strategy=sys.argv[1], max_epochs=1, **quiet)
    trainer.fit(Model(), DataLoader(Napping(), num_workers=1))
"""
)
ACCELERATE = (
    DATA
    + """
from accelerate import Accelerator, debug_launcher

def train():
    accelerator, model = Accelerator(cpu=True), torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), 1e-4)
    loader = DataLoader(Napping(), num_workers=1)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for batch in loader:
        accelerator.backward(model(batch).sum())
        optimizer.step()

if __name__ == "__main__":
    debug_launcher(train, num_processes=2)
"""
)


@pytest.mark.parametrize(
    ("script", "arguments"),
    [(LIGHTNING, ["ddp"]), (LIGHTNING, ["ddp_spawn"]), (ACCELERATE, [])],
    ids=["Lightning starts scripts", "Lightning spawns", "Accelerate forks"],
)
def test_each_rank_is_measured_and_the_job_is_one(
    script: str, arguments: list[str], tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text(script)
    command = [folder_of("main") / "pipeprof", "run", "train.py", *arguments]
    done = subprocess.run(
        command, cwd=tmp_path, env=UNWATCHED, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stderr.count("What each cure would give") == 1
    files = set(tmp_path.glob("pipeprof-run/*/rank*/*.json"))
    found = [json.loads(path.read_text()) for path in files if path.name != "ended.json"]
    delivered = {each["environment"]["rank"]: each["epochs"][0]["batches"] for each in found}
    assert delivered == {0: 60, 1: 60}
