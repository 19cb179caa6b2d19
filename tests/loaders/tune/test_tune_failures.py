"""Whatever becomes of a trial, training sees each sample once, and its own errors alone."""

from __future__ import annotations

import errno
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.data import BatchSampler, DataLoader, SequentialSampler, get_worker_info
from torchdata.stateful_dataloader import StatefulDataLoader

import pipeprof
from pipeprof.loaders.tune.lacking import what_is_lacking
from pipeprof.model import TunedSetting
from tests.loaders.tune.tuned import Slow, samples, tuned

pytestmark = [
    pytest.mark.timed,
    pytest.mark.filterwarnings("ignore:This DataLoader will create"),
]
OWN, TRIAL = TunedSetting(1, 2), TunedSetting(3, 2)


class FailsWith(Slow):
    """Raises ``error`` in each of three workers, sooner or later."""

    def __init__(self, error: Exception | None) -> None:
        super().__init__()
        self._error = error

    def __getitem__(self, index: int) -> torch.Tensor:
        worker = get_worker_info()
        if worker is not None and worker.num_workers == 3 and index % 7 == 0:
            if self._error is None:
                os.kill(os.getpid(), signal.SIGKILL)
            else:
                raise self._error
        return super().__getitem__(index)


@pytest.mark.parametrize("in_order", [True, False])
@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (MemoryError(), "too little memory"),
        (OSError(errno.EMFILE, "Too many open files"), "Too many open files"),
        (RuntimeError("unable to allocate shared memory(shm)"), "too little shared memory"),
        (None, "a worker died"),
    ],
    ids=["memory", "descriptors", "shared memory", "killed"],
)
def test_a_trial_that_meets_a_limit_is_undone(
    error: Exception | None, reason: str, in_order: bool
) -> None:
    loader = DataLoader(FailsWith(error), batch_size=8, num_workers=1)
    limited = tuned(loader, TunedSetting(3, 2, in_order=in_order))
    found = samples(limited)
    assert (found if in_order else sorted(found)) == [*range(1600)]
    (tried,) = limited.tuning().tried
    assert tried.error == reason
    assert limited.tuning().chosen == OWN


def test_between_epochs_a_trial_that_meets_a_limit_is_undone_within_its_epoch() -> None:
    loader = DataLoader(FailsWith(MemoryError()), batch_size=8, num_workers=1)
    limited = tuned(loader, TRIAL, within_epochs=False)
    for _ in range(4):
        assert samples(limited) == [*range(1600)]
    (tried,) = limited.tuning().tried
    assert tried.error == "too little memory"


@pytest.mark.parametrize("error", [ValueError("sample"), OSError(2, "No such file"), KeyError(3)])
def test_errors_of_the_data_are_no_limit_of_the_machine(error: Exception) -> None:
    assert what_is_lacking(error) is None


def test_after_ctrl_c_within_a_trial_the_next_epoch_is_whole() -> None:
    loader = tuned(DataLoader(Slow(), batch_size=8, num_workers=1), TRIAL)

    def train() -> None:
        for _ in loader:
            if len(multiprocessing.active_children()) > 1:  # those of the trial run
                time.sleep(0.05)
                signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        train()
    assert samples(loader) == [*range(1600)]
    assert multiprocessing.active_children() == []


_SPAWNED = """
import multiprocessing
from torch.utils.data import DataLoader
from pipeprof.model import TunedSetting
from tests.loaders.tune.tuned import Slow, samples, tuned

def main():
    multiprocessing.set_start_method("spawn")

    class Local(Slow):  # cannot be pickled, since it is no class of a module
        pass

    loader = tuned(DataLoader(Local(), batch_size=8), TunedSetting(1, 2))
    print(samples(loader) == [*range(1600)])
    print(loader.tuning().tried[0].error)

main()
"""


def test_a_data_set_that_cannot_be_sent_to_a_worker_is_trained_as_before() -> None:
    command = [sys.executable, "-W", "error", "-c", _SPAWNED]
    root = Path(__file__).parents[3]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=root)
    assert (done.stderr, done.stdout.splitlines()) == (
        "",
        ["True", "workers need a data set that can be pickled"],
    )


class Counting(BatchSampler):
    """Counts the batches that it gave."""

    def __init__(self, length: int) -> None:
        super().__init__(SequentialSampler(range(length)), 8, False)
        self.given = 0

    def __iter__(self) -> Iterator[list[int]]:
        for each in super().__iter__():
            self.given += 1
            yield each


def test_a_batch_sampler_that_counts_gives_each_batch_once() -> None:
    sampler = Counting(1600)
    loader = tuned(DataLoader(Slow(), batch_sampler=sampler, num_workers=1), TunedSetting(2, 4))
    assert samples(loader) == [*range(1600)]
    assert sampler.given == 200


def test_a_generator_as_a_sampler_gives_each_sample_once() -> None:
    sampler: Any = (index for index in range(1600))
    loader = tuned(DataLoader(Slow(), 8, sampler=sampler, num_workers=1), TunedSetting(2, 4))
    assert samples(loader) == [*range(1600)]
    assert samples(loader) == []


def test_limits_that_leave_no_choice_end_the_search() -> None:
    loader = DataLoader(Slow(), batch_size=8, num_workers=1)
    fixed = dict.fromkeys(("num_workers", "prefetch_factor"), 1)
    held = pipeprof.tune(loader, fixed=fixed, budget=1.0)
    while held.tuning().state == "searching":
        assert samples(held) == [*range(1600)]
    assert (held.tuning().state, held.tuning().tried) == ("best", ())
    del held


def test_persistent_workers_that_run_already_are_left_alone() -> None:
    loader = DataLoader(Slow(160), batch_size=8, num_workers=1, persistent_workers=True)
    batches = iter(loader)
    first = next(batches)
    same = pipeprof.tune(loader)
    assert "persistent workers are running already" in str(same.tuning())
    assert [*first.flatten().tolist(), *samples(batches)] == [*range(160)]
    assert samples(same) == [*range(160)]
    del loader, batches, same


def passes(loader: Any, left: bool) -> list[list[int]]:
    """Samples of a pass that is left at its tenth batch or not, and of one after its state."""
    first: list[int] = []
    for number, batch in enumerate(loader):
        first += batch.flatten().tolist()
        if left and number == 9:
            break
    loader.load_state_dict(loader.state_dict())
    return [first, samples(loader)]


@pytest.mark.filterwarnings("ignore:'set_vital' is deprecated")
@pytest.mark.parametrize("left", [True, False])
def test_a_stateful_loader_is_left_alone(left: bool) -> None:
    def loader() -> StatefulDataLoader[Any]:
        return StatefulDataLoader(Slow(160), batch_size=8, num_workers=1)

    same = pipeprof.tune(loader())
    assert passes(same, left) == passes(loader(), left)
    assert "makes iterators of its own" in str(same.tuning())
