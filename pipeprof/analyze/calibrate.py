"""From a few short profiled runs to what each batch asks of the machine, as the simulator takes it.

One run with one worker tells a batch's CPU time, its waits and its way to main. A second run, with
two, tells what they share: cores that slow each other down, a storage that gives no more. A few
batches without workers tell what making costs where nothing is sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf

import numpy as np

from pipeprof.analyze.columns import Columns, Floats
from pipeprof.analyze.simulate import Demand, Link, Machine, Setting, simulate
from pipeprof.errors import UsageError

FEWEST = 20
"""Batches of a run; fewer say too little."""
_SAME = 0.05
"""Rates so near to one another are not told apart."""
_HALVINGS = 12


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
    tried: int
    """The most workers that were measured."""
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
    demands = _demands(one.columns)
    machine = Machine(cores=cores, crowded=_crowded(one.columns, two.columns))
    shared = _shared_from(demands, machine, two)
    machine = replace(machine, link=Link(total=shared, each=1.0))
    inline = _inline(by_workers[0].columns) if 0 in by_workers else _unsent(demands)
    found = Calibration(demands, inline, machine, shared, max(by_workers), 0.0)
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


def _demands(columns: Columns) -> tuple[Demand, ...]:
    cpu_s = _cpu(columns)
    blocked_s = np.maximum(0.0, columns.made_s - cpu_s)
    next_begun_s = _next_of_worker(columns)
    sent_s = columns.sent_s - columns.fetch_end_s
    send_s, send_held_s = _base_and_held(sent_s, next_begun_s < columns.sent_s)
    # of a batch that main did not yet wait for, the way holds time in which it did something else
    awaited = columns.asked_s < columns.sent_s
    way_s = np.where(awaited, columns.arrived_s - columns.sent_s, np.nan)
    receive_s, receive_held_s = _base_and_held(way_s, next_begun_s < columns.arrived_s)
    rest_s = np.where(awaited, columns.delivered_s - columns.arrived_s, np.nan)
    receive_s += float(np.nanmedian(rest_s)) if not np.isnan(rest_s).all() else 0.0
    return tuple(
        # what a worker waits for may be shared: bytes of a link that gives each worker 1 a second
        Demand(
            link_bytes=float(blocked), cpu_s=float(cpu), send_s=send_s, send_held_s=send_held_s,
            receive_s=receive_s, receive_held_s=receive_held_s,
        )
        for blocked, cpu in zip(blocked_s, cpu_s, strict=True)
    )  # fmt: skip


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


def _next_of_worker(columns: Columns) -> Floats:
    """When the worker of each batch began its next; infinite where that was not seen."""
    begun_s = np.full(len(columns), inf)
    for worker in np.unique(columns.worker):
        of_worker = np.flatnonzero(columns.worker == worker)
        of_worker = of_worker[np.argsort(columns.fetch_start_s[of_worker])]
        begun_s[of_worker[:-1]] = columns.fetch_start_s[of_worker[1:]]
    return begun_s


def _base_and_held(seconds: Floats, held: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> tuple[
    float, float
]:  # fmt: skip
    """What it takes at the least, and how much more when the worker is at its next batch."""
    known = seconds[~np.isnan(seconds)]
    if not len(known):
        return 0.0, 0.0
    base_s = max(0.0, float(np.percentile(known, 10)))
    when_held = seconds[held & ~np.isnan(seconds)]
    more_s = float(np.mean(when_held)) - base_s if len(when_held) else 0.0
    return base_s, max(0.0, more_s)


def _crowded(one: Columns, two: Columns) -> float:
    """CPU time of a batch with one worker, over that with two: below 1 where they slow each
    other."""
    alone_s, beside_s = np.nanmean(_cpu(one)), np.nanmean(_cpu(two))
    if not (alone_s > 0 and beside_s > 0):
        return 1.0
    return float(min(1.0, max(0.5, alone_s / beside_s)))


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
