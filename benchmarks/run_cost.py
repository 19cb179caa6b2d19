"""Measures the time that `pipeprof run` adds to a script: at its start, and after its end.

Plain and profiled runs of the same scripts alternate, in random order: ``make bench-run``.
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

ROUNDS = 9
MOST_S = 1.0

NOTHING = "import time; print(time.time(), flush=True); print(time.time(), flush=True)"
TORCH = "import torch.utils.data\n" + NOTHING
LOADERS = """\
import time
import torch
from torch.utils.data import DataLoader
print(time.time(), flush=True)
for _ in range(2):
    for batch in DataLoader(range(20_000), batch_size=10): pass
print(time.time(), flush=True)
"""


def run(command: Sequence[str], folder: Path) -> tuple[float, float]:
    """Return the seconds until the script's first line, and those from its last line to the first
    line of a verdict, or to the end."""
    began = time.time()
    process = subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    assert process.stdout is not None
    lines = [process.stdout.readline(), process.stdout.readline()]
    process.stderr.readline()
    said = time.time()
    process.communicate()
    started, ended = map(float, lines)
    return started - began, said - ended


def compare(name: str, script: str, folder: Path) -> float:
    """Print a line, and return the larger of the median seconds added at the start and the end."""
    (folder / "script.py").write_text(script)
    commands = {
        "plain": [sys.executable, "script.py"],
        "run": [sys.executable, "-m", "pipeprof", "run", "script.py"],
    }
    starts: dict[str, list[float]] = {kind: [] for kind in commands}
    ends: dict[str, list[float]] = {kind: [] for kind in commands}
    order = random.Random(0)
    for _ in range(ROUNDS):
        for kind in order.sample(list(commands), len(commands)):
            start, end = run(commands[kind], folder)
            starts[kind].append(start)
            ends[kind].append(end)
    added = sorted(run - plain for run, plain in zip(starts["run"], starts["plain"], strict=True))
    print(
        f"{name:<34}  {median(starts['plain']):6.2f}  {median(starts['run']):6.2f}  "
        f"{median(added):+6.2f} ({added[0]:+.2f} to {added[-1]:+.2f})  "
        f"{median(ends['run']):6.2f} ({min(ends['run']):.2f}-{max(ends['run']):.2f})"
    )
    return max(median(added), median(ends["run"]))


def main() -> int:
    print(f"seconds, median (least-most) of {ROUNDS} runs, in random order")
    print(f"{'script':<34}   plain     run  added to the start      end to first word")
    with tempfile.TemporaryDirectory() as folder:
        worst = max(
            compare("nothing", NOTHING, Path(folder)),
            compare("imports torch.utils.data", TORCH, Path(folder)),
            compare("two loaders of 2,000 batches each", LOADERS, Path(folder)),
        )
    print(f"bar: {MOST_S:.0f} s at either end; {'met' if worst <= MOST_S else 'MISSED'}")
    return int(worst > MOST_S)


if __name__ == "__main__":
    sys.exit(main())
