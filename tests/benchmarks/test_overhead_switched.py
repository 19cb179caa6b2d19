"""The hooks that the benchmark takes off are off, in main and in workers, and come back."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace

import pytest
from torch.utils.data import Dataset

from benchmarks.overhead_arms import Ours
from benchmarks.overhead_cases import Case
from benchmarks.overhead_switched import Followed, Mode, Switch, _let_hooks_be_switched, _Switched
from pipeprof.measure.spans import current

CASE = Case("", Dataset(), batch_size=1, workers=0, batches=4, rounds=1, time_share=1.0,
            judged=("cpu_s",), relative=True, most=1.0, quiet=1.0)  # fmt: skip


class Hooked(Dataset):
    """Whether the process that makes the sample is being profiled."""

    def __len__(self):
        return 1000

    def __getitem__(self, index):
        return int(current.tally is not None)


def seen(workers, modes):
    switch = Switch()
    _let_hooks_be_switched(switch)
    case = replace(CASE, dataset=Followed(Hooked(), switch), workers=workers)
    running, told = _Switched(case, Ours("pipeprof"), switch), []
    for mode in modes:
        running.as_arm(running.arm, mode)
        told.append([int(next(running.batches)) for _ in range(10)][2 * workers :])
    return told, "_get_data" in vars(running._bare), running._turn._pass.nth


@pytest.mark.timed
@pytest.mark.parametrize(
    ("workers", "modes"),
    [
        (0, (Mode.WATCHING, Mode.OFF, Mode.WATCHING)),
        (2, (Mode.WATCHING, Mode.OFF, Mode.WATCHING)),
        (2, (Mode.WATCHING, Mode.PASSING, Mode.WATCHING)),
        (2, (Mode.PASSING, Mode.OFF, Mode.WATCHING)),
    ],
)
def test_hooks_come_and_go(workers, modes):
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("fork")) as child:
        told, hooked, counted = child.submit(seen, workers, modes).result()
    length = 10 - 2 * workers
    assert told == [[int(mode is Mode.WATCHING)] * length for mode in modes]
    assert hooked == bool(workers)
    assert counted > 0
