"""A DataLoader's run without the run: torch's own rules of dispatch, over what batches ask of the
machine, on resources that they share.

The rules are those of ``torch.utils.data.DataLoader`` (2.x): worker ``i mod W`` gets the next
task, in order or not; at most ``prefetch_factor × W`` are under way; one is dispatched whenever
one is handed out; without workers main makes each batch when it is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import cycle
from math import inf
from random import Random

import numpy as np
import numpy.typing as npt

from pipeprof.analyze.predict.event_engine import (
    Cores,
    Locks,
    Mailbox,
    Process,
    Shared,
    TokenBucket,
    World,
)
from pipeprof.analyze.predict.workload import Demand, Machine, Setting
from pipeprof.analyze.profile.batch_table import Floats

WARM_S = 0.002
"""Within this time after one batch the next is received more quickly, as caches are still warm."""
_TURN_S = 0.0025
"""The longest that a core takes to switch from what it computes to a process that is woken."""
_AT_ONCE = ((1.0, 1.0),)


def _spells(seed: int) -> tuple[tuple[float, float], ...]:
    """Shares of a batch's waiting and of its computing, in their order. A batch alternates between
    the two, as it consists of samples. If all waiting came before all computing, workers would fall
    into step with the training, and wait whenever main comes for a batch."""
    chance = Random(seed)
    waiting, computing = chance.random(), chance.random()
    return (waiting, computing), (1 - waiting, 1 - computing)


_SPELLS = tuple(map(_spells, range(64)))
"""Those of 64 batches, which are then used again."""


@dataclass(frozen=True)
class Run:
    """Moments of each batch, in order of delivery. [batches], seconds."""

    asked_s: Floats
    delivered_s: Floats
    done_s: Floats
    begun_s: Floats
    """Its fetch began."""
    made_s: Floats
    """It was fetched and collated."""
    sent_s: Floats
    """Its worker had sent it; ``made_s`` without workers."""
    worker: npt.NDArray[np.int64]
    """-1: main."""
    order: tuple[int, ...] = field(repr=False)
    """Which of the demands it was."""

    @property
    def wall_s(self) -> float:
        return float(self.done_s[-1] - self.asked_s[0])

    @property
    def batches_per_s(self) -> float:
        return len(self.order) / self.wall_s if self.wall_s else inf

    @property
    def starved_fraction(self) -> float:
        """Share of the time that main waited for batches, 0..1."""
        return float((self.delivered_s - self.asked_s).sum()) / self.wall_s if self.wall_s else 0.0

    def steady(self, setting: Setting) -> Run:
        """Its steady part: without the first batches, and without the last, which were fetched
        ahead while others were handed out. At least one batch is left."""
        warmup = min(setting.warmup, max(0, len(self.order) - 1))
        spare = max(0, len(self.order) - warmup - 1)
        return self.after(warmup, min(spare, setting.in_flight))

    def after(self, warmup: int, end: int = 0) -> Run:
        """Without the first ``warmup`` batches, and without the last ``end``."""
        kept = slice(warmup, len(self.order) - end)
        return Run(*(getattr(self, column.name)[kept] for column in fields(self)))


def simulate(demands: Sequence[Demand], setting: Setting, machine: Machine | None = None) -> Run:
    """The run over ``demands``, which are those of one batch after another. Without ``machine``
    nothing is scarce."""
    loader = _Loader(demands, setting, machine or Machine())
    loader.world.run(loader.main())
    asked_s, delivered_s, done_s = np.array(loader.moments).reshape(-1, 3).T
    making = np.array([loader.making[number] for number in loader.order])
    begun_s, made_s, worker = making.reshape(-1, 3).T
    sent_s = [loader.sent.get(number, loader.making[number][1]) for number in loader.order]
    return Run(
        asked_s, delivered_s, done_s, begun_s, made_s, np.array(sent_s),
        worker.astype(np.int64), tuple(loader.order),
    )  # fmt: skip


def simulate_steady(
    demands: Sequence[Demand], step_s: Floats, setting: Setting, machine: Machine
) -> Run:
    """The steady part of a run with those training steps, which come round again where they are
    fewer than the batches."""
    steps = cycle(step_s.tolist())
    stepped = [replace(each, step_s=step_s) for each, step_s in zip(demands, steps, strict=False)]
    return simulate(stepped, setting, machine).steady(setting)


class _Loader:
    """Main, and what it shares with its workers."""

    def __init__(self, demands: Sequence[Demand], setting: Setting, machine: Machine) -> None:
        self.demands, self.setting = demands, setting
        link = machine.link
        self.time = Shared()
        self.cores = Cores(machine.cores, machine.contention_factor)
        self.link = TokenBucket(link.total, link.each, link.burst, link.peak)
        self.interpreters = Locks()
        """Of the workers."""
        self.computing: set[int] = set()
        """Workers that compute at the moment, to fetch a batch."""
        self.owed_s: dict[int, float] = {}
        """Worker → CPU time that its fetch has lost to sending a batch meanwhile."""
        self.world = World((self.time, self.cores, self.link, self.interpreters))
        self.moments: list[tuple[float, float, float]] = []
        self.order: list[int] = []
        self.making: dict[int, tuple[float, float, int]] = {}
        """Batch → when its fetch began and ended, and its worker."""
        self.sent: dict[int, float] = {}
        """Batch → when its worker had sent it."""

    def main(self) -> Process:
        workers = _Workers(self) if self.setting.num_workers else None
        asked_s = self.world.now
        for batch in range(len(self.demands)):
            number = (yield from workers.take()) if workers else (yield from self.make(batch))
            delivered_s = self.world.now
            yield self.cores, self.demands[number].step_cpu_s
            yield self.time, self.demands[number].step_s
            self.moments.append((asked_s, delivered_s, self.world.now))
            self.order.append(number)
            asked_s = self.world.now

    def make(self, number: int, worker: int = -1) -> Process:
        demand, begun_s = self.demands[number], self.world.now
        by_turns = demand.cpu_s and demand.latency_s + demand.link_bytes
        for waiting, computing in _SPELLS[number % len(_SPELLS)] if by_turns else _AT_ONCE:
            yield self.time, waiting * demand.latency_s
            yield self.link, waiting * demand.link_bytes
            self.computing.add(worker)
            yield self.cores, computing * demand.cpu_s + self.owed_s.pop(worker, 0.0)
            self.computing.discard(worker)
        self.making[number] = begun_s, self.world.now, worker
        return number


class _Workers:
    """torch's ``_MultiProcessingDataLoaderIter``, and its worker processes."""

    def __init__(self, loader: _Loader) -> None:
        self._loader, setting = loader, loader.setting
        self._results = Mailbox(loader.world)
        self._tasks = [Mailbox(loader.world) for _ in range(setting.num_workers)]
        self._in_flight = [0] * setting.num_workers
        """Of each worker, the batches that are dispatched and not yet handed out."""
        self._cycle = cycle(range(setting.num_workers))
        self._unsent = iter(range(len(loader.demands)))
        self._due = 0
        """The next to be handed out, in order."""
        self._made_by: dict[int, int] = {}
        """Dispatched batch → its worker."""
        self._early: set[int] = set()
        """Batches that main received before it was their turn."""
        self._received_s = -inf
        """When main received the last batch."""
        self._busy = [False] * setting.num_workers
        """Whether each worker fetches a batch at the moment."""
        for worker in range(setting.num_workers):
            made = Mailbox(loader.world)
            loader.world.wake(self._work(worker, made))
            loader.world.wake(self._send(worker, made))
        for _ in range(setting.in_flight):
            self._dispatch()

    def take(self) -> Process:
        """The next batch that main gets."""
        loader = self._loader
        while self._due not in self._early:
            yield self._results
            number = self._results.take()
            yield loader.time, loader.demands[number].late_s
            yield loader.cores, self._receipt_s(loader.demands[number])
            held_s = loader.demands[number].receive_held_s
            if self._busy[self._made_by[number]]:
                yield loader.interpreters.of(self._made_by[number]), held_s
            elif loader.cores.all_busy:
                yield loader.time, min(held_s, _TURN_S)
            self._received_s = loader.world.now
            if not loader.setting.in_order:
                return self._hand_out(number)
            self._early.add(number)
        self._due += 1
        self._early.remove(self._due - 1)
        return self._hand_out(self._due - 1)

    def _receipt_s(self, demand: Demand) -> float:
        soon = self._loader.world.now - self._received_s < WARM_S
        return demand.receive_s * (demand.receive_warm if soon else 1.0)

    def _hand_out(self, number: int) -> int:
        self._in_flight[self._made_by.pop(number)] -= 1
        self._dispatch()
        return number

    def _dispatch(self) -> None:
        number = next(self._unsent, None)
        if number is None:
            return
        setting, worker = self._loader.setting, next(self._cycle)
        while not setting.in_order and self._in_flight[worker] >= setting.prefetch_factor:
            worker = next(self._cycle)
        self._in_flight[worker] += 1
        self._made_by[number] = worker
        self._tasks[worker].put(number)

    def _work(self, worker: int, made: Mailbox) -> Process:
        loader, tasks = self._loader, self._tasks[worker]
        while True:
            yield tasks
            self._busy[worker] = True
            number = tasks.take()
            made.put((yield from loader.make(number, worker)))
            self._busy[worker] = False
            loader.interpreters.let_go(worker)
            yield loader.cores, loader.demands[number].gap_s

    def _send(self, worker: int, made: Mailbox) -> Process:
        """The worker's feeder thread."""
        loader = self._loader
        lock = loader.interpreters.of(worker)
        while True:
            yield made
            number = made.take()
            if len(self._tasks[worker]) or self._busy[worker]:
                yield lock, loader.demands[number].send_held_s
            send_s = loader.demands[number].send_s
            if worker in loader.computing:  # of one interpreter, they take turns
                loader.owed_s[worker] = loader.owed_s.get(worker, 0.0) + send_s
                yield loader.time, send_s
            else:
                yield loader.cores, send_s
            loader.sent[number] = loader.world.now
            self._results.put(number)
