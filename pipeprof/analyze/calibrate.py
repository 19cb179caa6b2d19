"""From a few short profiled runs to what each batch asks of the machine, as the simulator takes it.

One run with one worker tells a batch's CPU time, its waits and its way to main. A second run, with
two, tells what they share: cores that slow each other down, a storage that gives no more. A few
batches without workers tell what making costs where nothing is sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf, nan

import numpy as np

from pipeprof.analyze.columns import Columns, Floats
from pipeprof.analyze.simulate import WARM_S, Demand, Link, Machine, Setting, simulate
from pipeprof.analyze.storage import SLOWEST_LINK
from pipeprof.errors import UsageError

FEWEST = 20
"""Batches of a run; fewer say too little."""
_SAME = 0.05
"""Rates so near to one another are not told apart."""
_HALVINGS = 12
_ENOUGH = 10
"""Batches to take a median of."""
_LEAST_BYTES = 4096
"""Of a batch, by read calls: fewer are what worker and main tell one another."""
_PACKED = 0.1
"""Times a batch's size, that it may have had in a file."""


@dataclass(frozen=True)
class Measured:
    """A short run of one setting; its steady part."""

    setting: Setting
    columns: Columns

    @property
    def batches_per_s(self) -> float:
        return len(self.columns) / float(self.columns.cycle_s.sum())


@dataclass(frozen=True)
class Calibration:
    """What the simulator needs."""

    demands: tuple[Demand, ...]
    """Of batches that workers make, in the order in which they were measured."""
    inline: tuple[Demand, ...]
    """Of batches that main makes."""
    machine: Machine
    shared_from: float
    """Workers that have room beside each other on what they wait for. Infinite: none was seen to
    be shared, by as many as were tried."""
    tried: float
    """The most workers that were measured; infinite where there is nothing that they could share
    but cores."""
    disagreement: float
    """The largest relative error at which it repeats the runs that it was made from."""


def calibrate(runs: Sequence[Measured], cores: float) -> Calibration:
    """From runs with 0 (may lack), 1 and 2 workers. Raises `UsageError` if they tell too little."""
    by_workers = {run.setting.num_workers: run for run in runs}
    for workers in (1, 2):
        if workers not in by_workers:
            raise UsageError(f"a run with num_workers={workers} is needed to predict others")
    for run in runs:
        if len(run.columns) < FEWEST:
            raise UsageError(
                f"the run with num_workers={run.setting.num_workers} measured "
                f"{len(run.columns)} batches; {FEWEST} at least are needed"
            )
    one, two = by_workers[1], by_workers[2]
    demands = _demands(one.columns, two.columns)
    machine = Machine(cores=cores, crowded=_crowded(one.columns, two.columns))
    may_share = _may_share(one.columns) or _may_share(two.columns)
    shared = _shared_from(demands, machine, two) if may_share else inf
    machine = replace(machine, link=Link(total=shared, each=1.0))
    inline = _inline(by_workers[0].columns) if 0 in by_workers else _unsent(demands)
    tried = max(by_workers) if may_share else inf
    found = Calibration(demands, inline, machine, shared, tried, 0.0)
    errors = [abs(found_rate(found, run) / run.batches_per_s - 1) for run in runs]
    return replace(found, disagreement=max(errors))


def found_rate(found: Calibration, run: Measured) -> float:
    """Batches/s as simulated in the setting of ``run``."""
    demands = found.demands if run.setting.num_workers else found.inline
    steps = stepping(demands, run.columns.step_s)
    return simulate(steps, run.setting, found.machine).after(_warmup(run.setting)).batches_per_s


def stepping(demands: Sequence[Demand], step_s: Floats) -> list[Demand]:
    """With those steps, which come round again when they are fewer."""
    return [
        replace(demand, step_s=float(step_s[number % len(step_s)]))
        for number, demand in enumerate(demands)
    ]


def _warmup(setting: Setting) -> int:
    return 2 * setting.num_workers * setting.prefetch_factor


def _demands(one: Columns, two: Columns) -> tuple[Demand, ...]:
    """Of the batches of ``one``, and of ``two`` what happens only where workers go on meanwhile."""
    cpu_s = _cpu(one)
    blocked_s = np.maximum(0.0, one.made_s - cpu_s)
    way = _Way(one, two)
    return tuple(
        # what a worker waits for may be shared: bytes of a link that gives each worker 1 a second
        Demand(
            link_bytes=float(blocked), cpu_s=float(cpu), send_s=way.send_s,
            send_held_s=way.send_held_s, gap_s=way.gap_s, receive_s=way.receive_s,
            receive_warm=way.receive_warm, receive_held_s=way.receive_held_s,
        )
        for blocked, cpu in zip(blocked_s, cpu_s, strict=True)
    )  # fmt: skip


class _Way:
    """From a worker to main, by what two runs saw of it."""

    def __init__(self, *runs: Columns) -> None:
        seen = [_Sent(run) for run in runs]
        self.send_s = _typical([run.send_s[~run.sending_beside] for run in seen])
        self.send_held_s = _held(self.send_s, [
            (run.send_s[run.sending_beside], run.send_room_s[run.sending_beside]) for run in seen
        ])  # fmt: skip
        # of a batch that main did not yet wait for, the way holds time in which it did other things
        way_s = _typical([run.way_s[run.awaited & ~run.beside] for run in seen])
        self.receive_s = way_s + _typical([run.rest_s for run in seen])
        self.receive_held_s = _held(way_s, [
            (run.way_s[run.awaited & run.beside], run.room_s[run.awaited & run.beside])
            for run in seen
        ])  # fmt: skip
        self.receive_warm = _warm(runs[-1])
        gaps_s = np.concatenate([run.gap_s[run.beside] for run in seen])
        self.gap_s = float(np.nanmedian(gaps_s)) if len(gaps_s) else 0.0


def _warm(run: Columns) -> float:
    """The share that unpickling takes soon after another batch was unpickled, of what it takes
    later."""
    arrived_s = np.sort(run.arrived_s)
    before = np.searchsorted(arrived_s, run.received_s) - 1
    since_s = np.where(before >= 0, run.received_s - arrived_s[before], nan)
    took_s = run.arrived_s - run.received_s
    warm, cold = took_s[since_s < WARM_S], took_s[since_s >= 2 * WARM_S]
    if min(len(warm), len(cold)) < _ENOUGH:
        return 1.0
    return float(min(1.0, np.median(warm) / np.median(cold)))


class _Sent:
    """The batches of a run, on their way. [batches], seconds; unknown is NaN."""

    def __init__(self, run: Columns) -> None:
        next_begun_s, next_made_s = _next_of_worker(run)
        self.gap_s = next_begun_s - run.fetch_end_s
        self.send_s = run.sent_s - run.fetch_end_s
        self.sending_beside = next_begun_s < run.sent_s
        """The worker was at its next batch before it had sent this one."""
        self.send_room_s = next_made_s - run.fetch_end_s
        """Until the worker had made that."""
        self.awaited = run.asked_s < run.sent_s
        self.way_s = run.arrived_s - run.sent_s
        self.rest_s = np.where(self.awaited, run.delivered_s - run.arrived_s, nan)
        self.beside = next_begun_s < run.arrived_s
        self.room_s = next_made_s - run.sent_s


def _typical(seconds: Sequence[Floats]) -> float:
    """The median of the first that has enough; else a low one of all."""
    known = [each[~np.isnan(each)] for each in seconds]
    for each in known:
        if len(each) >= _ENOUGH:
            return float(np.median(each))
    every = np.concatenate(known)
    return float(np.percentile(every, 10)) if len(every) else 0.0


def _held(base_s: float, runs: Sequence[tuple[Floats, Floats]]) -> float:
    """How much longer it takes while the worker is at its next batch, if that lasts long enough.

    ``runs``: what it took, and when the worker had made that batch, which ends the wait as well.
    The mean of waits that are cut off so (the maximum likelihood of an exponential distribution):
    all time waited over the number of waits that ended by themselves. Infinite if none did.
    """
    waited_s = ended = 0.0
    for took_s, room_s in runs:
        known = ~np.isnan(took_s) & ~np.isnan(room_s)
        more_s = np.maximum(0.0, np.minimum(took_s, room_s)[known] - base_s)
        waited_s += float(more_s.sum())
        ended += int((took_s < room_s)[known].sum())
    return waited_s / ended if ended else inf if waited_s else 0.0


def _inline(columns: Columns) -> tuple[Demand, ...]:
    cpu_s = _cpu(columns)
    rest_s = np.nanmedian(columns.wait_s - columns.made_s)
    return tuple(
        Demand(latency_s=float(blocked + max(0.0, rest_s)), cpu_s=float(cpu))
        for blocked, cpu in zip(np.maximum(0.0, columns.made_s - cpu_s), cpu_s, strict=True)
    )


def _unsent(demands: Sequence[Demand]) -> tuple[Demand, ...]:
    return tuple(Demand(latency_s=each.link_bytes, cpu_s=each.cpu_s) for each in demands)


def _cpu(columns: Columns) -> Floats:
    """CPU time of each batch, from those that were sampled: a straight line over what making took,
    so that a slow batch is slow by computing only if slow ones were seen to compute more."""
    made_s = columns.made_s
    seen = ~np.isnan(columns.cpu_s) & ~np.isnan(made_s)
    if not seen.any():
        return np.zeros(len(columns))
    cpu_s, of_s = columns.cpu_s[seen], made_s[seen]
    spread = float(np.var(of_s))
    slope = float(np.mean((of_s - of_s.mean()) * (cpu_s - cpu_s.mean()))) / spread if spread else 0
    slope = min(1.0, max(0.0, slope))
    known_s = np.nan_to_num(made_s)
    line: Floats = cpu_s.mean() + slope * (known_s - of_s.mean())
    return np.clip(line, 0.0, known_s)


def _next_of_worker(columns: Columns) -> tuple[Floats, Floats]:
    """When the worker of each batch began its next, and had made it; NaN where that was not
    seen."""
    begun_s, made_s = np.full((2, len(columns)), nan)
    for worker in np.unique(columns.worker):
        of_worker = np.flatnonzero(columns.worker == worker)
        of_worker = of_worker[np.argsort(columns.fetch_start_s[of_worker])]
        begun_s[of_worker[:-1]] = columns.fetch_start_s[of_worker[1:]]
        made_s[of_worker[:-1]] = columns.fetch_end_s[of_worker[1:]]
    return begun_s, made_s


def _crowded(one: Columns, two: Columns) -> float:
    """CPU time of a batch with one worker, over that with two: below 1 where they slow each
    other."""
    alone_s, beside_s = np.nanmean(_cpu(one)), np.nanmean(_cpu(two))
    if not (alone_s > 0 and beside_s > 0):
        return 1.0
    return float(min(1.0, max(0.5, alone_s / beside_s)))


def _may_share(columns: Columns) -> bool:
    """Whether what a worker waits for may be a storage: unless it is seen that it reads nothing,
    and its batches are too small to have come from one that nobody saw."""
    counted = np.nansum(columns.bytes) + np.nansum(columns.requests)
    read = np.nanmean(columns.logical_bytes) if not np.isnan(columns.logical_bytes).all() else inf
    if counted or read >= _LEAST_BYTES:
        return True
    weight = np.nanmean(columns.batch_bytes) if not np.isnan(columns.batch_bytes).all() else 0.0
    return bool(weight > _PACKED * SLOWEST_LINK * np.mean(columns.made_s))


def _shared_from(demands: Sequence[Demand], machine: Machine, two: Measured) -> float:
    """How many workers' waits go on beside each other at full speed, 1 to 2, where two workers are
    slower than they would be if they shared nothing; infinite where they are not."""

    def rate(shared: float) -> float:
        link = replace(machine, link=Link(total=shared, each=1.0))
        run = simulate(stepping(demands, two.columns.step_s), two.setting, link)
        return run.after(_warmup(two.setting)).batches_per_s

    if rate(inf) <= two.batches_per_s * (1 + _SAME):
        return inf
    low, high = 0.5, 2.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if rate(middle) > two.batches_per_s else (middle, high)
    return (low + high) / 2
