"""Plain and profiled in turns, on one and the same loader: our hooks are taken off it and put back.

Two loaders differ by a few per cent whatever is done to them: by where their memory lies, and
which core their workers run on. Here all of that is the same, and what is left is the hooks.
While they are off, nothing of ours runs but one look at a shared byte for each sample, which is
in every arm.

Of a loader with fast batches pipeprof watches stretches and passes by the others. Both are timed
by themselves: how much of each there is in use follows from how fast the batches come.
"""

from __future__ import annotations

import mmap
import multiprocessing
import random
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from enum import IntEnum
from time import perf_counter
from typing import Any

import torch
from torch.utils.data import Dataset

from benchmarks.overhead_arms import Arm
from benchmarks.overhead_cases import Case
from benchmarks.overhead_session import Running, Session
from pipeprof.loaders import hook, observe
from pipeprof.loaders.hook import Making
from pipeprof.loaders.iterator import Turn
from pipeprof.loaders.pace import PassingBy
from pipeprof.loaders.sender import Sender
from pipeprof.measure.meter import Meter

_NEVER = 1 << 62
"""A task that no session reaches."""


class Mode(IntEnum):
    OFF = 0
    WATCHING = 1
    PASSING = 2
    """Batches are passed by."""


Hook = Callable[[Mode], None]


class Switch:
    """How the hooks are to be, known to main and to the workers that it forks."""

    def __init__(self) -> None:
        self._wanted = mmap.mmap(-1, 1)
        self.turn(Mode.WATCHING)
        self._mode = Mode.WATCHING
        self._hooks: list[Hook] = []
        """Of this process."""

    def turn(self, mode: Mode) -> None:
        self._wanted[0] = mode

    def follow(self) -> None:
        if self._wanted[0] != self._mode:
            self._mode = Mode(self._wanted[0])
            for each in self._hooks:
                each(self._mode)

    def add(self, hook: Hook) -> None:
        """To be told of each change; it is `Mode.WATCHING` now."""
        self._hooks.append(hook)


class Followed(Dataset[Any]):
    """``dataset``, whose process follows the switch."""

    def __init__(self, dataset: Dataset[Any], switch: Switch) -> None:
        self._dataset, self._switch = dataset, switch

    def __len__(self) -> int:
        return len(self._dataset)  # type: ignore[arg-type]

    def __getitem__(self, index: int) -> Any:
        self._switch.follow()
        return self._dataset[index]


def hold_switched_session(case: Case, arms: dict[Arm, Mode], seed: int) -> Session:
    """``arms``: the first of them is the one that is profiled."""
    fork = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(1, mp_context=fork) as child:
        return child.submit(_session, case, arms, seed).result()


def _session(case: Case, arms: dict[Arm, Mode], seed: int) -> Session:
    torch.set_num_threads(1)
    switch = Switch()
    _let_hooks_be_switched(switch)
    followed = replace(case, dataset=Followed(case.dataset, switch))
    running = _Switched(followed, next(iter(arms)), switch)
    chance, session = random.Random(seed), []
    for _ in range(case.rounds):
        order = list(arms)
        chance.shuffle(order)
        session.append({arm.name: running.as_arm(arm, arms[arm]) for arm in order})
    return session


class _Switched(Running):
    def __init__(self, case: Case, ours: Arm, switch: Switch) -> None:
        super().__init__(case, ours)
        self._switch = switch
        self._profiled: Any = self.batches
        self._turn: Turn = self._profiled._turn
        self._bare: Iterator[Any] = self._turn.iterator
        self._passing: PassingBy | None = None
        if case.workers:
            switch.add(self._turn_main)

    def as_arm(self, arm: Arm, mode: Mode) -> Any:
        self._switch.turn(mode)
        self._switch.follow()
        self.arm, self.batches = arm, self._bare if mode is Mode.OFF else self._profiled
        # each worker follows on its next batch: to switch is none of a block's cost
        self.arm.take(self.batches, max(1, self._case.workers))
        self._rest()
        return self.block()

    def _turn_main(self, mode: Mode) -> None:
        turn, observer = self._turn, self._turn._observer
        if self._passing is not None:
            turn._pass.pass_by(self._passing.count())
            self._passing = turn._passing = None
        if mode is Mode.PASSING:
            self._passing = PassingBy(turn._pass, observer, self._bare, _NEVER)  # type: ignore[arg-type]
            turn.pass_by(self._passing)
        observer.watch(mode is Mode.WATCHING)  # type: ignore[attr-defined]


class _Pause:
    """A meter looks at the system so many times a second: of the seconds in which it is on."""

    def __init__(self, meter: Meter) -> None:
        self._meter, self._since_s = meter, 0.0

    def turn(self, on: bool) -> None:
        if not on:
            self._since_s = perf_counter()
            return
        passed_s = perf_counter() - self._since_s
        for name in ("_first_s", "_next_gauge_s", "_next_weigh_s"):
            setattr(self._meter, name, getattr(self._meter, name) + passed_s)


class _Maker:
    """The hooks of one fetcher."""

    def __init__(self, making: Making, meter: Meter) -> None:
        self._making, self._pause, self._on = making, _Pause(meter), True

    def turn(self, mode: Mode) -> None:
        on = mode is Mode.WATCHING
        if on != self._on:
            self._on = on
            self._pause.turn(on)
            self._making.watch(on)


def _let_hooks_be_switched(switch: Switch) -> None:
    """Those that will be set in this process and in its workers."""
    instrument, attach = hook.instrument, Sender.attach

    def switched_instrument(
        fetcher: Any, tell: Any, meter: Meter, *more: Any, **options: Any
    ) -> Making:
        making = instrument(fetcher, tell, meter, *more, **options)
        switch.add(_Maker(making, meter).turn)
        return making

    def switched_attach(sender: Sender, queue: Any) -> None:
        attach(sender, queue)

        def turn(mode: Mode) -> None:
            # its feeder thread keeps our lock, which has nothing to do while nothing is put
            if mode is Mode.OFF:
                vars(queue).pop("put", None)
            else:
                queue.put = sender.put

        switch.add(turn)

    hook.instrument = observe.instrument = switched_instrument
    Sender.attach = switched_attach  # type: ignore[method-assign]
