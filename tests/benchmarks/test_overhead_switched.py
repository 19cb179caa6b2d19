"""The hooks that the benchmark takes off are off, in main and in workers, and come back."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from time import process_time

import pytest
from torch.utils.data import Dataset

from benchmarks.overhead_arms import Ours
from benchmarks.overhead_cases import Case
from benchmarks.overhead_switched import Mode, Stream
from pipeprof.measure.stage_timer import current

CASE = Case("", Dataset(), batch_size=1, workers=0, batches=4, rounds=1, time_share=1.0,
            judged=("cpu_s",), relative=True, most=1.0, quiet=1.0)  # fmt: skip


BURN_S = 0.001


class Hooked(Dataset):
    """Whether the process that makes the sample is being profiled; it burns `BURN_S` for each."""

    def __len__(self):
        return 1000

    def __getitem__(self, index):
        end = process_time() + BURN_S
        while process_time() < end:
            pass
        return int(current.tally is not None)


def seen(workers, modes):
    stream = Stream(replace(CASE, dataset=Hooked(), workers=workers), Ours("pipeprof"), modes)
    plan, told, main = stream.plan, [], []
    for stretch in range(len(plan.modes)):
        plan.turn(stretch)
        batches = stream.bare if plan.mode is Mode.OFF else stream.profiled
        told.append([int(next(batches)) for _ in range(plan.batches)][plan.lead :])
        main.append("_get_data" in vars(stream.bare))
    return told[1:-1], main[1:-1], stream.turn._pass.nth


def clocked(workers):
    case = replace(CASE, dataset=Hooked(), workers=workers)
    return list(Stream(case, Ours("pipeprof"), [Mode.OFF, Mode.WATCHING]).spent())


def in_a_fork(call, *arguments):
    """Since hooks of pipeprof's are replaced for good."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("fork")) as child:
        return child.submit(call, *arguments).result()


@pytest.mark.parametrize(
    ("workers", "modes"),
    [
        (0, (Mode.WATCHING, Mode.OFF, Mode.WATCHING)),
        (2, (Mode.WATCHING, Mode.OFF, Mode.WATCHING)),
        (2, (Mode.WATCHING, Mode.CLOCKING, Mode.WATCHING)),
        (2, (Mode.CLOCKING, Mode.OFF, Mode.WATCHING)),
    ],
)
def test_hooks_come_and_go(workers, modes):
    told, main, counted = in_a_fork(seen, workers, modes)
    assert told == [[int(mode is Mode.WATCHING)] * CASE.batches for mode in modes]
    assert main == [bool(workers) and mode is Mode.WATCHING for mode in modes]
    assert counted > 0


@pytest.mark.parametrize("workers", [0, 2])
def test_what_workers_compute_is_counted_with_main(workers):
    spent = in_a_fork(clocked, workers)
    assert len(spent) == 2
    assert all(each.cpu_s > BURN_S for each in spent)
    assert all(each.cpu_s < 20 * BURN_S for each in spent)
