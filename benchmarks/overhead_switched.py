"""Plain and profiled in turns, on one and the same loader, in one unbroken stream of batches.

Two loaders differ by a few per cent whatever is done to them: by where their memory lies, and
which core their workers run on. And a machine that others use is another one some milliseconds
later. So here the stream is cut into stretches of a few batches, each with our hooks on or off as
a plan says that main and the workers know by the number of the batch: nobody waits for anybody,
and what is compared lies as near together as it can. While the hooks are off, nothing of ours runs
but one look at the plan for each sample, which is in every arm.

Of a loader with fast batches pipeprof watches stretches and passes by the others. Both are timed
by themselves: how much of each there is in use follows from how fast the batches come.
"""

from __future__ import annotations

import mmap
import multiprocessing
import random
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from enum import IntEnum
from itertools import islice
from time import perf_counter, process_time
from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset, get_worker_info

from benchmarks.overhead_arms import Arm
from benchmarks.overhead_cases import Case
from benchmarks.overhead_session import Session, Spent
from pipeprof.loaders.instrument.iterator import TimedPass
from pipeprof.loaders.instrument.sampling import ALL_TASKS
from pipeprof.loaders.instrument.worker_hooks import FetcherHooks
from pipeprof.loaders.instrument.worker_observer import WorkerObserver
from pipeprof.loaders.instrument.worker_sender import WorkerSender
from pipeprof.measure.resource_sampler import ResourceSampler


class Mode(IntEnum):
    OFF = 0
    WATCHING = 1
    CLOCKING = 2
    """Batches are only clocked."""


Hook = Callable[[Mode], None]


class Plan:
    """How the hooks are to be, stretch by stretch; known to main and to the workers that it forks.

    Of each stretch the first ``case.ahead()`` batches are not timed: they turn the hooks, and main
    knows them half, as they were under way by then.
    """

    def __init__(self, case: Case, modes: Sequence[Mode]) -> None:
        self.modes = (Mode.WATCHING, *modes, Mode.OFF)
        """With one stretch before and one after, to begin and to end with."""
        self.workers, self.lead = max(1, case.workers), max(1, case.ahead())
        self.batches = self.lead + case.batches
        """Of a stretch."""
        shape = (len(self.modes), self.workers, 2)
        memory = mmap.mmap(-1, 8 * int(np.prod(shape)))
        self.clocked_s = np.frombuffer(memory).reshape(shape)
        """CPU time of each worker, where its part of a stretch begins and ends."""
        self.mode = Mode.WATCHING
        self._hooks: list[Hook] = []
        """Of this process."""

    def add(self, hook: Hook) -> None:
        """To be told of each change; it is `Mode.WATCHING` now."""
        self._hooks.append(hook)

    def turn(self, stretch: int) -> None:
        """To the mode of the ``stretch``."""
        if self.modes[stretch] != self.mode:
            self.mode = self.modes[stretch]
            for each in self._hooks:
                each(self.mode)

    def work_on(self, batch: int) -> None:
        """In a worker: it begins the ``batch``."""
        stretch, nth = divmod(batch, self.batches)
        worker = batch % self.workers
        if stretch >= len(self.modes):
            return
        if nth < self.workers:
            if stretch:
                self.clocked_s[stretch - 1, worker, 1] = process_time()
            self.turn(stretch)
        if self.lead <= nth < self.lead + self.workers:
            self.clocked_s[stretch, worker, 0] = process_time()

    def worked_s(self, stretch: int) -> float:
        """CPU time of all workers for what is timed of the ``stretch``."""
        begun, ended = self.clocked_s[stretch].sum(axis=0)
        return float(ended - begun)


class Followed(Dataset[Any]):
    """``dataset``, read in order; its workers follow the plan."""

    def __init__(self, dataset: Dataset[Any], batch_size: int, plan: Plan) -> None:
        self._dataset, self._batch_size, self._plan = dataset, batch_size, plan

    def __len__(self) -> int:
        return len(self._dataset)  # type: ignore[arg-type]

    def __getitem__(self, index: int) -> Any:
        if not index % self._batch_size and get_worker_info() is not None:
            self._plan.work_on(index // self._batch_size)
        return self._dataset[index]


def hold_switched_session(case: Case, arms: dict[Arm, Mode], seed: int) -> Session:
    """``arms``: the first of them is the one that is profiled."""
    fork = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(1, mp_context=fork) as child:
        return child.submit(_session, case, arms, seed).result()


def _session(case: Case, arms: dict[Arm, Mode], seed: int) -> Session:
    torch.set_num_threads(1)
    chance, rounds = random.Random(seed), []
    for _ in range(case.rounds):
        order = list(arms)
        chance.shuffle(order)
        rounds.append(order)
    stream = Stream(case, next(iter(arms)), [arms[arm] for order in rounds for arm in order])
    spent = stream.spent()
    return [{arm.name: next(spent) for arm in order} for order in rounds]


class Stream:
    """One pass over one loader, whose hooks come and go."""

    def __init__(self, case: Case, ours: Arm, modes: Sequence[Mode]) -> None:
        self.plan = Plan(case, modes)
        _let_hooks_be_switched(self.plan)
        followed = Followed(case.dataset, case.batch_size, self.plan)
        self._case = case
        self.profiled: Any = ours.iterate(replace(case, dataset=followed).loader())
        self.turn: TimedPass = self.profiled._timed_pass
        self.bare: Iterator[Any] = self.turn.iterator
        if case.workers:
            self.plan.add(self._turn_main)

    def spent(self) -> Iterator[Spent]:
        """Of each stretch of the plan, when all have been run."""
        main = [self.clocked(stretch) for stretch in range(len(self.plan.modes) - 1)]
        self._take(self.plan.lead)  # by then each worker is done with the last of them
        count = self._case.batches
        for stretch, (wall_s, cpu_s) in enumerate(main[1:], start=1):
            workers_s = self.plan.worked_s(stretch) if self._case.workers else 0.0
            yield Spent(wall_s / count, (cpu_s + workers_s) / count)

    def clocked(self, stretch: int) -> tuple[float, float]:
        """In main: wall and CPU time of what is timed of the ``stretch``, which is the next."""
        self.plan.turn(stretch)
        self._take(self.plan.lead)
        start_s, start_cpu_s = perf_counter(), process_time()
        self._take(self._case.batches)
        return perf_counter() - start_s, process_time() - start_cpu_s

    def _take(self, count: int) -> None:
        """A training loop of empty steps."""
        batches = self.bare if self.plan.mode is Mode.OFF else self.profiled
        for _ in islice(batches, count):
            pass

    def _turn_main(self, mode: Mode) -> None:
        turn, observer = self.turn, self.turn._observer
        assert isinstance(observer, WorkerObserver)
        turn._set_recording(mode is not Mode.CLOCKING)
        turn._until_check = ALL_TASKS
        observer.set_active(mode is Mode.WATCHING)


class _Pause:
    """A meter looks at the system so many times a second: of the seconds in which it is on."""

    def __init__(self, meter: ResourceSampler) -> None:
        self._meter, self._since_s = meter, 0.0

    def turn(self, on: bool) -> None:
        if not on:
            self._since_s = perf_counter()
            return
        passed_s = perf_counter() - self._since_s
        for name in ("_first_s", "_next_gauge_s", "_next_nbytes_s"):
            setattr(self._meter, name, getattr(self._meter, name) + passed_s)


class _Maker:
    """The hooks of one fetcher."""

    def __init__(self, hooks: FetcherHooks, meter: ResourceSampler) -> None:
        self._hooks, self._pause, self._on = hooks, _Pause(meter), True

    def turn(self, mode: Mode) -> None:
        on = mode is Mode.WATCHING
        if on != self._on:
            self._on = on
            self._pause.turn(on)
            self._hooks.set_active(on)


def _let_hooks_be_switched(plan: Plan) -> None:
    """Those that will be set in this process and in its workers."""
    initialise, attach = FetcherHooks.__init__, WorkerSender.attach

    def switched_init(
        hooks: FetcherHooks,
        fetcher: Any,
        tell: Any,
        meter: ResourceSampler,
        *more: Any,
        **options: Any,
    ) -> None:
        initialise(hooks, fetcher, tell, meter, *more, **options)
        plan.add(_Maker(hooks, meter).turn)

    def switched_attach(sender: WorkerSender, queue: Any) -> None:
        attach(sender, queue)

        def turn(mode: Mode) -> None:
            # its feeder thread keeps our lock, which has nothing to do while nothing is put
            if mode is Mode.OFF:
                vars(queue).pop("put", None)
            else:
                queue.put = sender.put

        plan.add(turn)

    FetcherHooks.__init__ = switched_init  # type: ignore[method-assign,assignment]
    WorkerSender.attach = switched_attach  # type: ignore[method-assign]
