"""Plain and profiled in turns, on one and the same loader: our hooks are taken off it and put back.

Two loaders differ by a few per cent whatever is done to them: by where their memory lies, and
which core their workers run on. Here all of that is the same, and what is left is the hooks.
While they are off, nothing of ours runs but one look at a shared byte for each sample, which is
in every arm.
"""

from __future__ import annotations

import mmap
import multiprocessing
import random
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from time import perf_counter
from typing import Any

import torch
from torch.utils.data import Dataset

from benchmarks.overhead_arms import Arm
from benchmarks.overhead_cases import Case
from benchmarks.overhead_session import Running, Session
from pipeprof.loaders import hook, observe
from pipeprof.measure.meter import Meter
from pipeprof.measure.ring import RingWriter
from pipeprof.measure.spans import Tally, current

_NONE = object()
"""In place of an attribute that an object has not of its own."""


class Switch:
    """Whether the hooks are to be set, known to main and to the workers that it forks."""

    def __init__(self) -> None:
        self._wanted = mmap.mmap(-1, 1)
        self._set = True
        self._hooks: list[Callable[[bool], None]] = []
        """Of this process."""

    def turn(self, on: bool) -> None:
        self._wanted[0] = on
        self.follow()

    def follow(self) -> None:
        if self._wanted[0] != self._set:
            self._set = bool(self._wanted[0])
            for each in self._hooks:
                each(self._set)

    def add(self, owner: Any, **plain: Any) -> None:
        """The attributes of ``owner`` that are hooked now, and what they are without."""
        hooked = {name: owner.__dict__[name] for name in plain}

        def turn(on: bool) -> None:
            for name, value in (hooked if on else plain).items():
                if value is _NONE:
                    delattr(owner, name)
                else:
                    setattr(owner, name, value)

        self._hooks.append(turn)

    def when_turned(self, act: Callable[[bool], None]) -> None:
        self._hooks.append(act)


class Followed(Dataset[Any]):
    """``dataset``, whose process follows the switch."""

    def __init__(self, dataset: Dataset[Any], switch: Switch) -> None:
        self._dataset, self._switch = dataset, switch

    def __len__(self) -> int:
        return len(self._dataset)  # type: ignore[arg-type]

    def __getitem__(self, index: int) -> Any:
        self._switch.follow()
        return self._dataset[index]


def hold_switched_session(case: Case, ours: Arm, plain: tuple[Arm, Arm], seed: int) -> Session:
    fork = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(1, mp_context=fork) as child:
        return child.submit(_session, case, ours, plain, seed).result()


def _session(case: Case, ours: Arm, plain: tuple[Arm, Arm], seed: int) -> Session:
    torch.set_num_threads(1)
    switch = Switch()
    _let_hooks_be_switched(switch)
    running = _Switched(replace(case, dataset=Followed(case.dataset, switch)), ours, switch)
    chance, session = random.Random(seed), []
    for _ in range(case.rounds):
        arms = [ours, *plain]
        chance.shuffle(arms)
        session.append({arm.name: running.as_arm(arm, on=arm is ours) for arm in arms})
    return session


class _Switched(Running):
    def __init__(self, case: Case, ours: Arm, switch: Switch) -> None:
        super().__init__(case, ours)
        self._switch = switch
        self._profiled = self.batches
        self._bare: Iterator[Any] = self.batches._turn.iterator  # type: ignore[attr-defined]
        if case.workers:
            results = self._bare._worker_result_queue  # type: ignore[attr-defined]
            switch.add(results, _recv_bytes=results._reader.recv_bytes)
            switch.add(self._bare, _get_data=_NONE, _next_index=_NONE)

    def as_arm(self, arm: Arm, on: bool) -> Any:
        self._switch.turn(on)
        self.arm, self.batches = arm, self._profiled if on else self._bare
        return self.block()


class _Tally:
    """What takes the stages that the data set's code names: a worker's thread keeps it."""

    def __init__(self) -> None:
        self._kept: Tally | None = None

    def turn(self, on: bool) -> None:
        if on:
            current.tally = self._kept
        else:
            self._kept, current.tally = current.tally, None


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


def _let_hooks_be_switched(switch: Switch) -> None:
    """Those that will be set in this process and in its workers."""
    instrument, note_sending = hook.instrument, hook.note_sending

    def switched_instrument(
        fetcher: Any, tell: Any, meter: Meter, *more: Any, **options: Any
    ) -> None:
        collate = fetcher.collate_fn
        instrument(fetcher, tell, meter, *more, **options)
        switch.add(fetcher, fetch=_NONE, collate_fn=collate)
        switch.when_turned(_Pause(meter).turn)
        switch.when_turned(_Tally().turn)

    def switched_note_sending(queue: Any, writer: RingWriter) -> None:
        note_sending(queue, writer)
        # its feeder thread keeps our lock, which has nothing to do while nothing is put
        switch.add(queue, put=_NONE)

    hook.instrument = observe.instrument = switched_instrument
    hook.note_sending = switched_note_sending
