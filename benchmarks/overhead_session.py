"""Times blocks of batches. The loaders of all arms exist at once, and their blocks alternate.

So a disturbance of the machine that lasts longer than a block affects all arms alike, as do the
memory layout of the processes and the temperature. A session is a forked process of its own, so
that it leaves no state behind.
"""

from __future__ import annotations

import multiprocessing
import random
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any

import torch

from benchmarks.overhead_arms import Arm
from benchmarks.overhead_cases import Case

_REST_S = 0.004
"""Workers that use no CPU time for this long have nothing left to do."""


@dataclass(frozen=True)
class Spent:
    """Times per batch."""

    wall_s: float
    cpu_s: float
    """CPU time of the main process and the workers together."""


Session = list[dict[str, Spent]]
"""Rounds, each with one block of every arm, by the arm's name."""


def hold_session(case: Case, arms: Sequence[Arm], rounds: int, seed: int) -> Session:
    fork = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(1, mp_context=fork) as child:
        return child.submit(_session, case, arms, rounds, seed).result()


def _session(case: Case, arms: Sequence[Arm], rounds: int, seed: int) -> Session:
    torch.set_num_threads(1)
    order, chance = list(arms), random.Random(seed)
    chance.shuffle(order)
    order.sort(key=lambda arm: arm.alters_torch)
    running = [Running(case, arm) for arm in order]
    session = []
    for _ in range(rounds):
        chance.shuffle(running)
        session.append({one.arm.name: one.block() for one in running})
    return session


class Running:
    """An arm, its iterator and the iterator's workers."""

    def __init__(self, case: Case, arm: Arm) -> None:
        self.arm = arm
        self._case = case
        others = set(multiprocessing.active_children())
        self.batches: Iterator[Any] = arm.iterate(case.loader())
        arm.take(self.batches, 1)  # a generator starts its workers only now
        self._workers = [process.pid for process in set(multiprocessing.active_children()) - others]
        arm.take(self.batches, case.batches - 1)
        self._rest()

    def block(self) -> Spent:
        case, take = self._case, self.arm.take
        workers_s = self._workers_s()
        with self.arm.around():
            main_s = time.process_time()
            take(self.batches, case.ahead())
            start = time.perf_counter()
            take(self.batches, case.batches)
            wall_s = time.perf_counter() - start
            main_s = time.process_time() - main_s
        self._rest()
        cpu_s = main_s + self._workers_s() - workers_s
        return Spent(wall_s / case.batches, cpu_s / (case.batches + case.ahead()))

    def _rest(self) -> None:
        """Wait until the workers have prefetched all that they may."""
        before, now = -1.0, self._workers_s()
        while self._workers and before != now:
            time.sleep(_REST_S)
            before, now = now, self._workers_s()

    def _workers_s(self) -> float:
        # the ID of another process's CPU clock, as clock_getcpuclockid(3) computes it
        return sum(time.clock_gettime(~pid << 3 | 2) for pid in self._workers if pid)
