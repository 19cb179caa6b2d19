"""`pipeprof compare` names the slow one of two real ranks of a training."""

import json
import subprocess
import sys

from pipeprof.cli.app import run
from tests.support.env import UNWATCHED

SCRIPT = """
import os
import time

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset

class Napping(Dataset):
    def __len__(self):
        return 30
    def __getitem__(self, index):
        time.sleep(0.050 if os.environ["RANK"] == "1" else 0.005)
        return torch.tensor([float(index)])

if __name__ == "__main__":
    dist.init_process_group("gloo")
    for batch in DataLoader(Napping(), num_workers=1):
        dist.all_reduce(batch)
    dist.destroy_process_group()
"""


def test_the_slow_one_of_two_ranks_is_named(tmp_path, capsys):
    (tmp_path / "train.py").write_text(SCRIPT)
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    done = subprocess.run(
        [*launch, "-m", "pipeprof", "run", "--quiet", "train.py"],
        cwd=tmp_path, capture_output=True, text=True, timeout=100, check=False,
        env={**UNWATCHED, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    files = sorted(map(str, tmp_path.glob("pipeprof-run/*/rank*/train*.json")))
    assert len(files) == 2
    assert run(["compare", *files]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert printed.startswith("Ranks of one training critical Of 2 ranks, rank 1 takes")
    assert "the others wait for it in their steps" in printed
    assert run(["compare", *files, "--json"]) == 0
    skew = json.loads(capsys.readouterr().out)["ranks"]
    assert (skew["ranks"], skew["rank"], skew["grade"]) == (2, 1, "critical")
    assert skew["fetch_s"] > 0.050
    assert skew["others_s"] > 0.005
