"""Simulate the run of a DataLoader: torch's rules of dispatch, on the demands of batches and the
resources that they share.

The rules are those of ``torch.utils.data.DataLoader`` (2.x). Worker ``i mod W`` gets the next task,
in order or not. At most ``prefetch_factor × W`` tasks are in flight, and one is dispatched whenever
one is handed out. Without workers main fetches each batch when it is asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import cycle, islice
from math import inf, nan
from random import Random

import numpy as np

from pipeprof.analyze.predict.event_engine import (
    Cores,
    Locks,
    Mailbox,
    Process,
    Time,
    TokenBucket,
    World,
)
from pipeprof.analyze.predict.simulated_run import SimulatedRun
from pipeprof.analyze.predict.workload import Demand, Machine, Setting
from pipeprof.analyze.profile.batch_table import Floats

WARM_S = 0.002
"""Seconds after a batch within which the next is received faster, as caches are still warm."""
_SWITCH_S = 0.0025
"""Longest time that a busy core takes to switch to a process that is woken."""
_UNDIVIDED = ((1.0, 1.0),)


def _phases(seed: int) -> tuple[tuple[float, float], ...]:
    """Return shares of a batch's waiting and of its computing, in their order. A batch alternates
    between the two, as it consists of samples. If all waiting came before all computing, workers
    would synchronise with the training, and wait whenever main needs a batch."""
    random = Random(seed)
    waiting, computing = random.random(), random.random()
    return (waiting, computing), (1 - waiting, 1 - computing)


_PHASES = tuple(map(_phases, range(64)))
"""Phases of 64 batches, which are then used again."""


def simulate(
    demands: Sequence[Demand],
    setting: Setting,
    machine: Machine | None = None,
    step_s: Iterable[float] | None = None,
) -> SimulatedRun:
    """Simulate a run over ``demands``, one batch after another. Without ``machine`` nothing is
    scarce; without ``step_s`` the training steps are those of the demands."""
    steps = [each.step_s for each in demands] if step_s is None else step_s
    loader = _Loader(demands, setting, machine or Machine(), list(islice(steps, len(demands))))
    loader.world.run(loader.main())
    asked_s, delivered_s, done_s = np.array(loader.moments).reshape(-1, 3).T
    fetches = np.array([loader.fetches[number] for number in loader.order])
    begun_s, made_s, worker = fetches.reshape(-1, 3).T
    sent_s = [loader.sent.get(number, loader.fetches[number][1]) for number in loader.order]
    pinned_s = [loader.pinned.get(number, nan) for number in loader.order]
    return SimulatedRun(
        asked_s, delivered_s, done_s, begun_s, made_s, np.array(sent_s), np.array(pinned_s),
        worker.astype(np.int64), tuple(loader.order),
    )  # fmt: skip


def simulate_steady(
    demands: Sequence[Demand], step_s: Floats, setting: Setting, machine: Machine
) -> SimulatedRun:
    """Return the steady part of a run with training steps of ``step_s``, which are repeated where
    they are fewer than the batches."""
    return simulate(demands, setting, machine, cycle(step_s.tolist())).steady(setting)


class _Loader:
    """The main process, and what it shares with its workers."""

    def __init__(
        self,
        demands: Sequence[Demand],
        setting: Setting,
        machine: Machine,
        step_s: Sequence[float],
    ) -> None:
        self.demands, self.setting, self.step_s = demands, setting, step_s
        link = machine.link
        self.time = Time()
        self.cores = Cores(machine.cores, machine.contention_factor)
        self.link = TokenBucket(link.total, link.each, link.burst, link.peak)
        self.interpreters = Locks()
        """The interpreter of each worker."""
        self.computing: set[int] = set()
        """Workers that are computing to fetch a batch."""
        self.owed_s: dict[int, float] = {}
        """Worker → CPU time that its fetch has lost to sending a batch meanwhile."""
        self.world = World((self.time, self.cores, self.link, self.interpreters))
        self.moments: list[tuple[float, float, float]] = []
        """When each batch was asked for, delivered and done with, in order of delivery."""
        self.order: list[int] = []
        self.fetches: dict[int, tuple[float, float, int]] = {}
        """Batch → when its fetch began and ended, and its worker."""
        self.sent: dict[int, float] = {}
        """Batch → when its worker had sent it."""
        self.pinned: dict[int, float] = {}
        """Batch → when a thread had pinned it."""

    def main(self) -> Process:
        """Run the training loop over all batches."""
        workers = _Workers(self) if self.setting.num_workers else None
        asked_s = self.world.now
        for batch in range(len(self.demands)):
            number = (yield from workers.take()) if workers else (yield from self.fetch(batch))
            delivered_s = self.world.now
            yield self.cores, self.demands[number].step_cpu_s
            yield self.time, self.step_s[number]
            self.moments.append((asked_s, delivered_s, self.world.now))
            self.order.append(number)
            asked_s = self.world.now

    def fetch(self, number: int, worker: int = -1) -> Process:
        """Fetch and collate a batch in ``worker``, or in main. Returns its number."""
        demand, begun_s = self.demands[number], self.world.now
        alternates = demand.cpu_s and demand.latency_s + demand.link_bytes
        for waiting, computing in _PHASES[number % len(_PHASES)] if alternates else _UNDIVIDED:
            yield self.time, waiting * demand.latency_s
            yield self.link, waiting * demand.link_bytes
            self.computing.add(worker)
            yield self.cores, computing * demand.cpu_s + self.owed_s.pop(worker, 0.0)
            self.computing.discard(worker)
        self.fetches[number] = begun_s, self.world.now, worker
        return number


class _Workers:
    """torch's ``_MultiProcessingDataLoaderIter``, and its worker processes."""

    def __init__(self, loader: _Loader) -> None:
        self._loader, setting = loader, loader.setting
        self._results = Mailbox(loader.world)
        """Batches that workers have sent."""
        self._pinned = Mailbox(loader.world)
        """Batches that are pinned."""
        self._tasks = [Mailbox(loader.world) for _ in range(setting.num_workers)]
        self._in_flight = [0] * setting.num_workers
        """Batches of each worker that are dispatched and not yet handed out."""
        self._cycle = cycle(range(setting.num_workers))
        self._undispatched = iter(range(len(loader.demands)))
        self._due = 0
        """Number of the next batch to hand out, in order."""
        self._worker_of: dict[int, int] = {}
        """Dispatched batch → its worker."""
        self._early: set[int] = set()
        """Batches that main received out of order, and holds back."""
        self._received_s = -inf
        """When the last batch was received."""
        self._busy = [False] * setting.num_workers
        """Whether each worker is fetching a batch."""
        for worker in range(setting.num_workers):
            fetched = Mailbox(loader.world)
            loader.world.wake(self._work(worker, fetched))
            loader.world.wake(self._send(worker, fetched))
        if setting.pin_memory:
            loader.world.wake(self._pin())
        for _ in range(setting.in_flight):
            self._dispatch()

    def take(self) -> Process:
        """Wait for the next batch. Returns its number."""
        setting = self._loader.setting
        while self._due not in self._early:
            number = yield from self._take_pinned() if setting.pin_memory else self._receive()
            if not setting.in_order:
                return self._hand_out(number)
            self._early.add(number)
        self._due += 1
        self._early.remove(self._due - 1)
        return self._hand_out(self._due - 1)

    def _receive(self) -> Process:
        """Wait for a batch that a worker has sent, and receive it. Returns its number."""
        loader = self._loader
        yield self._results
        number = self._results.take()
        demand, worker = loader.demands[number], self._worker_of[number]
        yield loader.time, demand.late_s
        # unpickling needs the files of the batch, so the wait for the worker comes first
        if self._busy[worker]:
            yield loader.interpreters.of(worker), demand.receive_blocked_s
        elif loader.cores.all_busy:
            yield loader.time, min(demand.receive_blocked_s, _SWITCH_S)
        warm = loader.world.now - self._received_s < WARM_S
        yield loader.cores, demand.receive_s * (demand.receive_warm if warm else 1.0)
        self._received_s = loader.world.now
        return number

    def _pin(self) -> Process:
        """Run main's pinning thread: receive and pin one batch after another."""
        loader = self._loader
        while True:
            number = yield from self._receive()
            yield loader.time, loader.demands[number].pin_s
            loader.pinned[number] = loader.world.now
            self._pinned.put(number)

    def _take_pinned(self) -> Process:
        """Wait for a pinned batch, and take it. Returns its number."""
        yield self._pinned
        number = self._pinned.take()
        yield self._loader.cores, self._loader.demands[number].take_s
        return number

    def _hand_out(self, number: int) -> int:
        self._in_flight[self._worker_of.pop(number)] -= 1
        self._dispatch()
        return number

    def _dispatch(self) -> None:
        """Give the next task to the next worker; nothing where no task is left."""
        number = next(self._undispatched, None)
        if number is None:
            return
        setting, worker = self._loader.setting, next(self._cycle)
        while not setting.in_order and self._in_flight[worker] >= setting.prefetch_factor:
            worker = next(self._cycle)
        self._in_flight[worker] += 1
        self._worker_of[number] = worker
        self._tasks[worker].put(number)

    def _work(self, worker: int, fetched: Mailbox) -> Process:
        """Run the worker's loop: fetch one batch after another."""
        loader, tasks = self._loader, self._tasks[worker]
        while True:
            yield tasks
            self._busy[worker] = True
            number = tasks.take()
            fetched.put((yield from loader.fetch(number, worker)))
            self._busy[worker] = False
            loader.interpreters.release(worker)
            yield loader.cores, loader.demands[number].gap_s

    def _send(self, worker: int, fetched: Mailbox) -> Process:
        """Run the worker's feeder thread: send one batch after another."""
        loader = self._loader
        lock = loader.interpreters.of(worker)
        while True:
            yield fetched
            number = fetched.take()
            if len(self._tasks[worker]) or self._busy[worker]:
                yield lock, loader.demands[number].send_blocked_s
            send_s = loader.demands[number].send_s
            if worker in loader.computing:  # both share one interpreter
                loader.owed_s[worker] = loader.owed_s.get(worker, 0.0) + send_s
                yield loader.time, send_s
            else:
                yield loader.cores, send_s
            loader.sent[number] = loader.world.now
            self._results.put(number)
