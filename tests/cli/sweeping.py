"""Run `pipeprof sweep` on few and short trials, and in a process of its own."""

import subprocess
import sys

QUICK = ["--workers", "0,1", "--step-ms", "2", "--trial-time", "0.2", "--warmup-time", "0.05",
         "--batch-size", "64"]  # fmt: skip

WAITING = """
import time
from pathlib import Path
from torch.utils.data import get_worker_info

HERE = Path(__file__).parent

def wait(batch):
    while get_worker_info() is not None and not (HERE / "go").exists():
        (HERE / "waiting").touch()
        time.sleep(0.02)
    return batch
"""


def pipeprof(*arguments, **options):
    return subprocess.run(
        [sys.executable, "-m", "pipeprof", *arguments],
        capture_output=True, text=True, timeout=100, check=False, **options,
    )  # fmt: skip
