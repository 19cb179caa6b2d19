"""A trial whose workers the kernel kills for want of memory is undone, and training continues."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.lab
_LIMIT_BYTES = 1_500_000_000
_SCRIPT = """
import time, torch
from torch.utils.data import DataLoader
from pipeprof.model import TunedSetting
from tests.loaders.tune.tuned import Slow, samples, tuned

class Hungry(Slow):
    held = None

    def __getitem__(self, index):
        if self.held is None:  # in each worker
            self.held = torch.ones(100_000_000)  # 400 MB
        return super().__getitem__(index)

loader = tuned(DataLoader(Hungry(), batch_size=8, num_workers=1), TunedSetting(4, 2))
print(samples(loader) == [*range(1600)])
print(loader.tuning().tried[0].error)
print(loader.tuning().chosen)
"""


@pytest.fixture
def limited() -> Iterator[Path]:
    """A control group whose processes have 1.5 GB together; of cgroup version 1 or 2."""
    root = Path("/sys/fs/cgroup")
    first = (root / "memory").is_dir()
    group = (root / "memory" if first else root) / f"pipeprof-{os.getpid()}"
    group.mkdir()
    limit = "memory.limit_in_bytes" if first else "memory.max"
    (group / limit).write_text(f"{_LIMIT_BYTES}")
    yield group
    group.rmdir()


def test_a_trial_that_dies_of_memory_is_undone(limited: Path) -> None:
    command = f'echo $$ > {limited}/cgroup.procs; exec {sys.executable} -W ignore -c "$SCRIPT"'
    done = subprocess.run(
        ["sh", "-c", command],
        env={**os.environ, "SCRIPT": _SCRIPT}, cwd=Path(__file__).parents[2],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.splitlines() == ["True", "a worker died", "num_workers=1, prefetch_factor=2"]
