"""Workers of `open_dataset` and of sweeps end with a parent that is killed; other loaders are left
as they are."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from torch.utils.data import DataLoader

import pipeprof
from tests.loaders.forms import Act
from tests.support.wait import comes

OURS = """
import os, sys, time
from torch.utils.data import DataLoader
import pipeprof

def to_bytes(batch):
    return bytes(300_000)  # more than a pipe holds: the worker's feeder thread waits for a reader

if __name__ == "__main__":
    folder, start, parent = sys.argv[1:]
    data_set = pipeprof.open_dataset(folder, batch_size=16, repeat=True, transform=to_bytes)
    if parent == "pipe":
        del os.pidfd_open
    iterator = iter(DataLoader(data_set, None, num_workers=2, multiprocessing_context=start))
    next(iterator)
    print("ready", flush=True)
    time.sleep(300)
"""
BUSY = """
import atexit, sys, threading
from pathlib import Path
import torch
from torch.utils.data import DataLoader
import pipeprof

def compute():
    while True:
        torch.zeros(10**6).sum()

def start_threads(batch):
    if not any(thread.name == "busy" for thread in threading.enumerate()):
        atexit.register(Path(sys.argv[2]).touch)
        for _ in range(2):
            threading.Thread(target=compute, daemon=True, name="busy").start()
    return batch

if __name__ == "__main__":
    data_set = pipeprof.open_dataset(sys.argv[1], batch_size=16, transform=start_threads)
    iterator = iter(DataLoader(data_set, None, num_workers=1, multiprocessing_context="spawn"))
    next(iterator)
    (worker,) = iterator._workers
    del iterator
    print(worker.exitcode)
"""
THEIRS = """
from torch.utils.data import DataLoader

class Endless:
    def __len__(self):
        return 10**9
    def __getitem__(self, index):
        return bytes(10_000)

def make(num_workers, batch_size):
    return DataLoader(Endless(), batch_size, num_workers=num_workers, collate_fn=b"".join)

def to_bytes(batch):
    return bytes(300_000)
"""


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    for name in ("a", "b"):
        (folder / f"{name}.csv").write_text("a,b\n" + "1,2\n" * 512)
    return folder


def descendants(process: int) -> set[int]:
    """Return all descendants of a process."""
    found: set[int] = set()
    with suppress(OSError):
        for tasks in Path(f"/proc/{process}/task").glob("*/children"):
            for child in map(int, tasks.read_text().split()):
                found |= {child} | descendants(child)
    return found


def running(processes: set[int]) -> set[int]:
    """Return the processes that have not ended; one that ended and is not reaped has no command."""
    alive = set()
    for process in processes:
        with suppress(OSError):
            if Path(f"/proc/{process}/cmdline").read_bytes():
                alive.add(process)
    return alive


def kill(process: subprocess.Popen[str], workers: set[int]) -> None:
    """Kill the process, and check that no descendant outlives it."""
    process.send_signal(signal.SIGKILL)
    process.communicate()
    try:
        assert comes(lambda: not running(workers))
    finally:
        for each in running(workers):
            os.kill(each, signal.SIGKILL)


@pytest.mark.parametrize("asked", ["{data} --transform {mine}:to_bytes", "--loader {mine}:make"])
def test_a_killed_sweep_leaves_no_worker(asked, data, tmp_path):
    mine = tmp_path / "mine.py"
    mine.write_text(THEIRS)
    words = asked.format(data=data, mine=mine).split()
    setting = ["--workers", "2", "--batch-size", "64", "--step-ms", "1", "--trial-time", "300"]
    sweep = subprocess.Popen(
        [sys.executable, "-m", "pipeprof", "sweep", *words, *setting, "--out", tmp_path / "out"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    assert comes(lambda: sum(has_sent_a_batch(each) for each in descendants(sweep.pid)) == 2)
    kill(sweep, descendants(sweep.pid))


def has_sent_a_batch(process: int) -> bool:
    """Return whether the process is a worker that has sent a batch."""
    with suppress(OSError):
        return len(os.listdir(f"/proc/{process}/task")) >= 2
    return False


@pytest.mark.parametrize(
    ("start", "parent"),
    [("fork", "pidfd"), ("fork", "pipe"), ("spawn", "pidfd"), ("forkserver", "pidfd")],
)
def test_a_killed_training_leaves_no_worker_of_our_data_set(start, parent, data, tmp_path):
    script = tmp_path / "train.py"
    script.write_text(OURS)
    training = subprocess.Popen(
        [sys.executable, script, data, start, parent], stdout=subprocess.PIPE, text=True
    )
    assert training.stdout is not None
    assert training.stdout.readline() == "ready\n"
    kill(training, descendants(training.pid))


def threads_here(index: int) -> None:
    if any(each.name == "parent-watch" for each in threading.enumerate()):
        raise RuntimeError("a user's worker has a thread of ours")


def test_a_loader_that_is_only_profiled_gets_no_watch():
    assert len(list(pipeprof.wrap(DataLoader(Act(threads_here, 32), 4, num_workers=2)))) == 8


def test_a_spawned_worker_ends_although_threads_compute(data: Path, tmp_path: Path) -> None:
    """Without our care it aborts, as Python stops its threads within torch's C++ code."""
    (tmp_path / "busy.py").write_text(BUSY)
    ended = tmp_path / "ended"
    done = subprocess.run(
        [sys.executable, str(tmp_path / "busy.py"), str(data), str(ended)],
        capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    assert done.stdout == "0\n"
    assert done.stderr == ""
    assert ended.exists(), "what atexit holds is called"
