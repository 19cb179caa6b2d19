"""From a few short profiled runs to what each batch asks of the machine, as the simulator takes it.

A run with one worker shows a batch's CPU time, its waits and its transfer to main. A second run,
with two, shows what they share: cores that slow each other down, or a storage that gives no more. A
few batches without workers show what a fetch costs where nothing is sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf

import numpy as np

from pipeprof.analyze.predict.batch_costs import BatchCosts
from pipeprof.analyze.predict.burst_trim import trim_burst
from pipeprof.analyze.predict.dataloader_sim import simulate_steady
from pipeprof.analyze.predict.receive_fit import receiving
from pipeprof.analyze.predict.transfer_fit import TransferModel
from pipeprof.analyze.predict.workload import Demand, Link, Machine, Measured, Setting
from pipeprof.analyze.profile.batch_table import Columns
from pipeprof.analyze.thresholds import LEAST_BATCHES_TO_SIMULATE, SLOWEST_LINK
from pipeprof.errors import UsageError

_SAME = 0.05
"""Rates that differ by less count as equal."""
_IN_EACH_OTHERS_WAY = 1.6
"""Below this concurrency, two workers are treated as sharing one resource, even where no reads were
observed."""
_MOST_SHARED = 0.85
"""Largest share of what ``default_collate`` takes in a worker that shared memory may account for:
without it, it takes 12 to 20 %, for one tensor of 2 kB or of 5 MB, or for 20 small ones."""
_HALVINGS = 12
_LEAST_BYTES = 4096
"""The fewest bytes of a batch by read calls: fewer are messages between worker and main."""
_PACKED = 0.1
"""The least size that a batch may have in a file, relative to its tensors."""


@dataclass(frozen=True)
class Calibration:
    """What the simulator needs."""

    demands: tuple[Demand, ...]
    """Of batches that one worker fetches, in the order in which they were measured."""
    inline: tuple[Demand, ...]
    """Of batches that main fetches."""
    machine: Machine
    shared_from: float
    """Workers that can wait concurrently without slowing each other down. Infinite: no limit was
    observed with as many as were tried."""
    tried: float
    """The most workers that were measured; infinite where there is nothing that they could share
    but cores."""
    disagreement: float
    """The largest relative error with which it repeats the runs that it was calibrated from."""
    noise: float
    """One standard deviation, relative, of what runs in the same setting differ by; 0 where none
    was run twice."""
    several: tuple[Demand, ...] = ()
    """Of batches that two or more workers fetch; empty: the same as with one."""

    def of(self, setting: Setting) -> tuple[Demand, ...]:
        """What batches ask for in ``setting``."""
        if not setting.num_workers:
            return self.inline
        return self.several if self.several and setting.num_workers > 1 else self.demands

    def machine_with(self, shared_from: float) -> Machine:
        """The machine, if so many workers can wait concurrently."""
        return replace(self.machine, link=_link(self.demands, shared_from))


def calibrate(runs: Sequence[Measured], cores: float) -> Calibration:
    """From runs with 0 (optional), 1 and 2 workers, each once or several times.

    Raises `UsageError` for a run that lacks or is too short."""
    by_workers: dict[int, list[Measured]] = {}
    for run in map(_steady, runs):
        by_workers.setdefault(run.setting.num_workers, []).append(run)
    for workers in (1, 2):
        if workers not in by_workers:
            raise UsageError(f"a run with num_workers={workers} is needed to predict others")
    for run in (each for same in by_workers.values() for each in same):
        if len(run.columns) < LEAST_BATCHES_TO_SIMULATE:
            raise UsageError(
                f"the run with num_workers={run.setting.num_workers} measured "
                f"{len(run.columns)} batches from beginning to end; at least "
                f"{LEAST_BATCHES_TO_SIMULATE} are needed"
            )
    ones, twos = by_workers[1], by_workers[2]
    demands = _demands(ones, twos)
    machine = Machine(
        cores=cores, contention_factor=_contention_factor(ones, twos), link=Link(each=1.0)
    )
    several = receiving(demands, machine, twos)
    shared, shares = _shared_from(several, machine, twos), waits(demands)
    if shares and not any(may_share(run.columns) for run in runs):
        shares = shared < _IN_EACH_OTHERS_WAY
    shared = shared if shares else inf
    found = Calibration(
        receiving(demands, machine, ones),
        _inline(by_workers.get(0, ()), demands, ones),
        machine, shared, max(by_workers) if shares else inf, 0.0,
        _noise(list(by_workers.values())), several,
    )  # fmt: skip
    machine, errors = found.machine_with(shared), []
    for same in by_workers.values():
        setting, step_s = same[0].setting, same[0].columns.step_s
        repeated = simulate_steady(found.of(setting), step_s, setting, machine)
        errors.append(abs(repeated.batches_per_s / _rate(same) - 1))
    return replace(found, disagreement=max(errors))


def whole(run: Measured) -> Measured:
    """The batches whose fetch was observed."""
    return replace(run, columns=run.columns.take(~np.isnan(run.columns.made_s)))


def _steady(run: Measured) -> Measured:
    """The run as it would have continued: without a burst of its storage."""
    known = whole(run)
    shares = known.setting.num_workers > 0 and may_share(known.columns)
    return trim_burst(known, LEAST_BATCHES_TO_SIMULATE) if shares else known


def _rate(runs: Sequence[Measured]) -> float:
    """Batches/s of them all."""
    return sum(len(run.columns) for run in runs) / sum(run.seconds for run in runs)


def _noise(settings: Sequence[Sequence[Measured]]) -> float:
    """The standard deviation of log rates within each setting, of all together."""
    rates = [np.log([run.batches_per_s for run in runs]) for runs in settings]
    squares = sum(len(each) * np.var(each) for each in rates)
    freedom = sum(map(len, rates)) - len(rates)
    return float(np.sqrt(squares / freedom)) if freedom else 0.0


def _demands(ones: Sequence[Measured], twos: Sequence[Measured]) -> tuple[Demand, ...]:
    """Of the batches of both, as they are with one worker; what only happens while workers are at
    their next batches is taken from ``twos``."""
    costs = BatchCosts.of(ones).and_of(BatchCosts.of(twos))
    return costs.demands(TransferModel(ones, twos).demand)


def _inline(
    runs: Sequence[Measured], demands: tuple[Demand, ...], ones: Sequence[Measured]
) -> tuple[Demand, ...]:
    """Of batches that main fetches; without ``runs`` of that kind, estimated from ``ones``."""
    if not runs:
        less_s, rest_s = _into_shared_memory_s(ones), _own_rest_s(ones)
        return tuple(
            Demand(latency_s=each.link_bytes + rest_s, cpu_s=max(0.0, each.cpu_s - less_s))
            for each in demands
        )
    waits_s = np.concatenate([run.columns.wait_s - run.columns.made_s for run in runs])
    rest_s = max(0.0, float(np.nanmedian(waits_s)))
    costs = BatchCosts.of(runs).and_of(BatchCosts.of(ones))
    return tuple(
        Demand(latency_s=float(blocked) + rest_s, cpu_s=float(cpu))
        for blocked, cpu in zip(costs.blocked_s, costs.cpu_s, strict=True)
    )


def _into_shared_memory_s(runs: Sequence[Measured]) -> float:
    """CPU time that workers spend on a batch and main would not. In a worker, torch's
    ``default_collate`` stacks tensors into new shared memory, which the kernel has to create and
    clear. It is part of the collation, and in the kernel."""
    kernel_s = np.concatenate([run.columns.system_s for run in runs])
    collate_s = np.concatenate([run.columns.collate_s for run in runs])
    if np.isnan(kernel_s).all() or np.isnan(collate_s).all():
        return 0.0
    return float(min(np.nanmean(kernel_s), _MOST_SHARED * np.nanmean(collate_s)))


def _own_rest_s(runs: Sequence[Measured]) -> float:
    """What main takes to hand out a batch that has arrived: the least of it, because with workers
    main also dispatches another batch meanwhile."""
    rest_s = np.concatenate([run.columns.delivered_s - run.columns.arrived_s for run in runs])
    return max(0.0, float(np.nanpercentile(rest_s, 10))) if not np.isnan(rest_s).all() else 0.0


def _contention_factor(ones: Sequence[Measured], twos: Sequence[Measured]) -> float:
    """CPU time of a batch with one worker, divided by that with two; below 1 where they slow each
    other down."""
    alone_s, beside_s = (float(np.mean(BatchCosts.of(runs).cpu_s)) for runs in (ones, twos))
    if not (alone_s > 0 and beside_s > 0):
        return 1.0
    return float(min(1.0, max(0.5, alone_s / beside_s)))


def waits(demands: Sequence[Demand]) -> bool:
    """Whether batches wait for anything while they are fetched."""
    waited_s = sum(each.link_bytes for each in demands)
    return waited_s > _SAME * sum(each.link_bytes + each.cpu_s for each in demands)


def may_share(columns: Columns) -> bool:
    """Whether a worker may wait for a storage that others share. Not where it was observed to read
    nothing, and its batches are too small to come from a storage that was not observed."""
    counted = np.nansum(columns.bytes) + np.nansum(columns.requests)
    read = np.nanmean(columns.logical_bytes) if not np.isnan(columns.logical_bytes).all() else inf
    if counted or read >= _LEAST_BYTES:
        return True
    weight = np.nanmean(columns.batch_bytes) if not np.isnan(columns.batch_bytes).all() else 0.0
    return bool(weight > _PACKED * SLOWEST_LINK * np.mean(columns.made_s))


def _link(demands: Sequence[Demand], shared_from: float) -> Link:
    """A link on which so many workers can wait concurrently. With less than one, its rate is
    limited: what it does not give while nobody asks it gives later, up to a batch. So it also slows
    a single worker, but not visibly while that is given its batches one by one."""
    if shared_from >= 1:
        return Link(total=shared_from, each=1.0)
    burst = float(np.mean([each.link_bytes for each in demands]))
    return Link(total=shared_from, each=1.0, burst=burst, peak=inf)


def _shared_from(demands: Sequence[Demand], machine: Machine, twos: Sequence[Measured]) -> float:
    """How many workers can wait concurrently at full speed, up to 2, where two workers are slower
    than they would be if they shared nothing; infinite where they are not."""
    setting, step_s, measured = twos[0].setting, twos[0].columns.step_s, _rate(twos)

    def rate(shared: float) -> float:
        beside = replace(machine, link=_link(demands, shared))
        return simulate_steady(demands, step_s, setting, beside).batches_per_s

    if rate(inf) <= measured * (1 + _SAME):
        return inf
    low, high = 0.1, 2.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if rate(middle) > measured else (middle, high)
    return (low + high) / 2
