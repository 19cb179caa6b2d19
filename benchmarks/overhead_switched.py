"""Times one loader alternately plain and profiled, in one unbroken stream of batches.

Two equal loaders differ by a few per cent, because of the place of their memory and the cores that
their workers run on. The speed of a shared machine changes within milliseconds. So the stream is
divided into stretches of a few batches, each with our hooks on or off. Main and workers derive that
from a common plan and the number of the batch, and need not wait for each other. The compared
stretches are as near in time as possible. While the hooks are off, our only code that runs is one
lookup in the plan per sample, which is in every arm.

For fast batches, pipeprof records some windows in full and only clocks the other batches. Both
modes are timed separately; their shares in use follow from the rate of the batches.
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
from benchmarks.overhead_cases import PERIOD, Case
from benchmarks.overhead_session import Session, Spent
from pipeprof.loaders.instrument.fetcher_hooks import FetcherHooks
from pipeprof.loaders.instrument.inline_observer import InlineObserver
from pipeprof.loaders.instrument.iterator import TimedPass
from pipeprof.loaders.instrument.sampling import CHECK_EVERY, LONGEST, SamplingSchedule
from pipeprof.loaders.instrument.worker_observer import WorkerObserver
from pipeprof.loaders.instrument.worker_sender import WorkerSender
from pipeprof.measure.resource_sampler import ResourceSampler


class Mode(IntEnum):
    OFF = 0
    WATCHING = 1
    CLOCKING = 2
    """Batches are only timed, and not recorded in full."""


Hook = Callable[[Mode], None]


class Plan:
    """The mode of the hooks in each stretch, shared by main and the workers that it forks.

    The first ``case.ahead()`` batches of each stretch are not timed. They switch the hooks, and
    main records only a part of them, as workers had begun them before.
    """

    def __init__(self, case: Case, modes: Sequence[Mode]) -> None:
        self.modes = (Mode.WATCHING, *modes, Mode.OFF)
        """The mode of each stretch, with one more stretch at the start and one at the end."""
        self.workers, self.lead = max(1, case.workers), max(1, case.ahead())
        self.batches = self.lead + case.batches
        """Batches per stretch."""
        shape = (len(self.modes), self.workers, 2)
        memory = mmap.mmap(-1, 8 * int(np.prod(shape)))
        self.clocked_s = np.frombuffer(memory).reshape(shape)
        """CPU time of each worker where its timed part of a stretch begins and ends."""
        self.mode = Mode.WATCHING
        self._hooks: list[Hook] = []
        """Hooks of this process."""

    def add(self, hook: Hook) -> None:
        """Register a hook, which is called on each change. The mode is `Mode.WATCHING` now."""
        self._hooks.append(hook)

    def turn(self, stretch: int) -> None:
        """Switch the hooks to the mode of the ``stretch``."""
        if self.modes[stretch] != self.mode:
            self.mode = self.modes[stretch]
            for each in self._hooks:
                each(self.mode)

    def work_on(self, batch: int) -> None:
        """Follow the plan in a worker that begins the ``batch``."""
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
        """Return the CPU time of all workers for the timed part of the ``stretch``."""
        begun, ended = self.clocked_s[stretch].sum(axis=0)
        return float(ended - begun)


class Followed(Dataset[Any]):
    """A wrapper of ``dataset``, which is read in order. Its workers follow the plan."""

    def __init__(self, dataset: Dataset[Any], batch_size: int, plan: Plan) -> None:
        self._dataset, self._batch_size, self._plan = dataset, batch_size, plan

    def __len__(self) -> int:
        return len(self._dataset)  # type: ignore[arg-type]

    def __getitem__(self, index: int) -> Any:
        if not index % self._batch_size and get_worker_info() is not None:
            self._plan.work_on(index // self._batch_size)
        return self._dataset[index]


def hold_switched_session(case: Case, arms: dict[Arm, Mode], seed: int) -> Session:
    """Run a session in a process of its own. The first of ``arms`` is the one that is profiled."""
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
    """One pass over one loader, whose hooks are switched on and off."""

    def __init__(self, case: Case, ours: Arm, modes: Sequence[Mode]) -> None:
        self.plan = Plan(case, modes)
        _let_hooks_be_switched(self.plan)
        followed = Followed(case.dataset, case.batch_size, self.plan)
        self._case = case
        self.profiled: Any = ours.iterate(replace(case, dataset=followed).loader())
        self.turn: TimedPass = self.profiled._timed_pass
        self.bare: Iterator[Any] = self.turn.iterator
        profiler: Any = self.turn._owner
        profiler._start.schedule = Switched(self.plan)
        self.plan.add(self._turn_main)

    def spent(self) -> Iterator[Spent]:
        """Run all stretches of the plan, and then yield the times of each."""
        main = [self.clocked(stretch) for stretch in range(len(self.plan.modes) - 1)]
        self._take(self.plan.lead)  # by then each worker has finished the last stretch
        count = self._case.batches
        for stretch, (wall_s, cpu_s) in enumerate(main[1:], start=1):
            workers_s = self.plan.worked_s(stretch) if self._case.workers else 0.0
            yield Spent(wall_s / count, (cpu_s + workers_s) / count)

    def clocked(self, stretch: int) -> tuple[float, float]:
        """Run ``stretch``, the next one, and return main's wall and CPU time of its timed part."""
        self.plan.turn(stretch)
        self._take(self.plan.lead)
        start_s, start_cpu_s = perf_counter(), process_time()
        self._take(self._case.batches)
        if self._case.batches >= PERIOD:
            self._fold()
        return perf_counter() - start_s, process_time() - start_cpu_s

    def _fold(self) -> None:
        """Fold the rows of this stretch now, so that no stretch pays for those of another."""
        recorder = self.turn._pass._recorder
        self.turn._pass.flush()
        if recorder._rows:
            recorder._fold_all_but(0)

    def _take(self, count: int) -> None:
        """Take ``count`` batches in a training loop with empty steps."""
        batches = self.bare if self.plan.mode is Mode.OFF else self.profiled
        for _ in islice(batches, count):
            pass

    def _turn_main(self, mode: Mode) -> None:
        turn, observer = self.turn, self.turn._observer
        assert isinstance(observer, WorkerObserver | InlineObserver)
        turn._set_recording(mode is not Mode.CLOCKING)
        turn._until_check = min(turn._until_check, CHECK_EVERY)
        observer.set_active(mode is Mode.WATCHING)


class Switched(SamplingSchedule):
    """Stands in for the schedule of sampling: the plan decides, and not the time."""

    def __init__(self, plan: Plan) -> None:
        super().__init__()
        self._plan = plan

    def check(self, *_: Any) -> tuple[bool, int]:
        watching = self._plan.mode is Mode.WATCHING
        return watching, CHECK_EVERY if watching else LONGEST


class _Pause:
    """Shifts the schedule of a sampler by its pauses, as its rate is per second of active time."""

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
    """Switches the hooks of one fetcher."""

    def __init__(self, hooks: FetcherHooks, meter: ResourceSampler) -> None:
        self._hooks, self._pause, self._on = hooks, _Pause(meter), True

    def turn(self, mode: Mode) -> None:
        on = mode is Mode.WATCHING
        if on != self._on:
            self._on = on
            self._pause.turn(on)
            if on is not self._hooks.active:  # main may have switched its own
                self._hooks.set_active(on)


def _let_hooks_be_switched(plan: Plan) -> None:
    """Add to the plan all hooks that will be set in this process and in its workers."""
    attach_fetcher, attach = FetcherHooks.attach, WorkerSender.attach

    def switched_fetcher(hooks: FetcherHooks, fetcher: Any) -> None:
        attach_fetcher(hooks, fetcher)
        plan.add(_Maker(hooks, hooks._meter).turn)

    def switched_attach(sender: WorkerSender, queue: Any) -> None:
        attach(sender, queue)
        plan.add(lambda mode: sender.switch(mode is Mode.WATCHING))

    FetcherHooks.attach = switched_fetcher  # type: ignore[method-assign]
    WorkerSender.attach = switched_attach  # type: ignore[method-assign]
