"""Derive what each batch asks of the machine from a few short profiled runs.

A run with one worker shows a batch's CPU time, its waits and its transfer to main. A second run,
with two workers, shows what these share: cores that slow each other down, or a storage that is
fully used. A few batches without workers show what a fetch costs where nothing is sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf

import numpy as np

from pipeprof.analyze.predict.batch_costs import BatchCosts
from pipeprof.analyze.predict.burst_trim import trim_burst
from pipeprof.analyze.predict.dataloader_sim import simulate_steady
from pipeprof.analyze.predict.inline_costs import inline_demands
from pipeprof.analyze.predict.receive_fit import fit_receiving
from pipeprof.analyze.predict.transfer_fit import TransferModel
from pipeprof.analyze.predict.workload import Demand, Link, Machine, Measured, Setting
from pipeprof.analyze.profile.batch_table import Columns
from pipeprof.analyze.profile.limited_rate import saves_up
from pipeprof.analyze.thresholds import (
    EQUAL_WITHIN,
    LEAST_BATCHES_TO_SIMULATE,
    LEAST_BYTES_READ,
    SLOWEST_LINK,
)
from pipeprof.errors import UsageError

_SHARING_BELOW = 1.6
"""Concurrent waits below which two workers are treated as sharing one resource, even where no reads
were observed."""
_HALVINGS = 12
_LEAST_LIMIT = 0.1
"""Least number of concurrent waits that is considered."""
_SAVED_BATCHES, _AT_ONCE = 2.0, 1000.0
"""Batches that a storage saves up at most, and how fast it serves them. More change nothing."""
_LEAST_FILE_SIZE = 0.1
"""Smallest size of a batch in a file, relative to its tensors."""


@dataclass(frozen=True)
class Calibration:
    """The input of the simulator: demands of batches, and the machine that serves them."""

    demands: tuple[Demand, ...]
    """Demands of batches that one worker fetches, in the order of measurement."""
    inline: tuple[Demand, ...]
    """Demands of batches that main fetches."""
    machine: Machine
    concurrent_waits: float
    """Number of workers that can wait concurrently without slowing each other down. Infinite where
    no limit was observed."""
    most_workers: float
    """The most workers that were measured; infinite where workers can share nothing but cores."""
    disagreement: float
    """Largest relative error with which the simulator repeats the runs of the calibration."""
    noise: float
    """Relative standard deviation of runs in the same setting; 0 where none was run twice."""
    concurrent_demands: tuple[Demand, ...] = ()
    """Demands of batches that two or more workers fetch; empty where they are ``demands``."""
    regains: bool = False
    """Whether what workers wait for regains, while it is idle, what it could have served."""
    saves_up: bool = False
    """Whether one worker waits less after other work. Then ``concurrent_waits`` is the rate of the
    storage, and it serves at once what it has saved up."""
    one_prefetches: bool = False
    """Whether the worker of runs with one worker prefetched more than one batch."""

    def of(self, setting: Setting) -> tuple[Demand, ...]:
        """Return the demands of batches in ``setting``."""
        if not setting.num_workers:
            return self.inline
        several = setting.num_workers > 1
        return self.concurrent_demands if several and self.concurrent_demands else self.demands

    def machine_with(self, concurrent_waits: float) -> Machine:
        """Return the machine on which ``concurrent_waits`` workers can wait at full speed."""
        link = _link(self.demands, concurrent_waits, self.regains)
        if self.saves_up:
            link = replace(link, each=_AT_ONCE, burst=_SAVED_BATCHES * link.burst, peak=_AT_ONCE)
        return replace(self.machine, link=link)


def calibrate(
    runs: Sequence[Measured], cores: float, others: Sequence[Measured] = ()
) -> Calibration:
    """Calibrate from runs with 0 (optional), 1 and 2 workers, each once or several times.

    Runs in ``others``, if any, decide between calibrations that repeat ``runs`` equally well.

    Raises:
        UsageError: A run is missing or too short.
    """
    by_workers = _by_workers(runs)
    ones, twos = by_workers[1], by_workers[2]
    costs = BatchCosts.of(ones).pooled_with(BatchCosts.of(twos))
    demands = costs.demands(TransferModel(ones, twos).demand)
    factor = _contention_factor(ones, twos)
    machine = Machine(cores=cores, contention_factor=factor, link=Link(each=1.0))
    concurrent_demands = fit_receiving(demands, machine, twos)
    limits, shares = _wait_limits(concurrent_demands, machine, twos), has_waits(demands)
    if shares and not any(may_share_storage(run.columns) for run in runs):
        shares = max(limits.values()) < _SHARING_BELOW
    calibration = Calibration(
        fit_receiving(demands, machine, ones),
        inline_demands(by_workers.get(0, ()), demands, ones),
        machine, inf, max(by_workers) if shares else inf, 0.0,
        _noise(list(by_workers.values())), concurrent_demands,
        one_prefetches=ones[0].setting.prefetch_factor > 1,
    )  # fmt: skip
    if shares:
        possible = [replace(calibration, concurrent_waits=limit, regains=regains)
                    for regains, limit in limits.items()]  # fmt: skip
        longer = [run for run in map(_steady, others)
                  if len(run.columns) >= LEAST_BATCHES_TO_SIMULATE]  # fmt: skip
        calibration = min(possible, key=lambda each: sum(_errors(each, longer)))
    every = [run for same in by_workers.values() for run in same]
    calibration = replace(calibration, disagreement=max(_errors(calibration, every)))
    if not shares or not any(saves_up(run.columns) for run in ones):
        return calibration
    saving = _saving(calibration, ones, by_workers.get(0, ()))
    saving = replace(saving, disagreement=max(_errors(saving, every)))
    near = saving.disagreement <= calibration.disagreement + EQUAL_WITHIN
    return saving if near else calibration


def _saving(
    calibration: Calibration, ones: Sequence[Measured], zeros: Sequence[Measured]
) -> Calibration:
    """Return ``calibration`` for a storage that saves up what nobody waits for. A batch asks of it
    what it serves in a turn of the run with one worker."""
    mean = float(np.mean([each.link_bytes for each in calibration.demands]))
    inline = (
        calibration.inline if zeros else inline_demands((), calibration.demands, ones, shared=True)
    )
    demands, inline, concurrent = (
        tuple(replace(each, link_bytes=mean if each.link_bytes else 0.0) for each in some)
        for some in (calibration.demands, inline, calibration.concurrent_demands)
    )
    return replace(
        calibration, demands=demands, inline=inline, concurrent_demands=concurrent,
        concurrent_waits=mean * _rate(ones), regains=True, saves_up=True,
    )  # fmt: skip


def _errors(calibration: Calibration, runs: Sequence[Measured]) -> list[float]:
    """Return the relative errors of the simulated rates of ``runs``, in the order of settings."""
    machine = calibration.machine_with(calibration.concurrent_waits)
    by_setting: dict[Setting, list[Measured]] = {}
    for run in runs:
        by_setting.setdefault(run.setting, []).append(run)
    errors = []
    for setting, same in by_setting.items():
        step_s = same[0].step_s(setting)
        repeated = simulate_steady(calibration.of(setting), step_s, setting, machine)
        errors.append(abs(repeated.batches_per_s / _rate(same) - 1))
    return errors


def _by_workers(runs: Sequence[Measured]) -> dict[int, list[Measured]]:
    """Return the steady parts of ``runs`` by number of workers. Raises `UsageError` where a run is
    missing or too short."""
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
    return by_workers


def with_fetch_times(run: Measured) -> Measured:
    """Return only the batches of ``run`` whose fetch was observed."""
    return replace(run, columns=run.columns.take(~np.isnan(run.columns.made_s)))


def _steady(run: Measured) -> Measured:
    """Return the run as it would have continued, without a burst of its storage."""
    known = with_fetch_times(run)
    shares = known.setting.num_workers > 0 and may_share_storage(known.columns)
    return trim_burst(known, LEAST_BATCHES_TO_SIMULATE) if shares else known


def _rate(runs: Sequence[Measured]) -> float:
    """Return batches/s of all runs together."""
    return sum(len(run.columns) for run in runs) / sum(run.seconds for run in runs)


def _noise(settings: Sequence[Sequence[Measured]]) -> float:
    """Return the pooled standard deviation of log rates within each setting."""
    rates = [np.log([run.batches_per_s for run in runs]) for runs in settings]
    squares = sum(len(each) * np.var(each) for each in rates)
    freedom = sum(map(len, rates)) - len(rates)
    return float(np.sqrt(squares / freedom)) if freedom else 0.0


def _contention_factor(ones: Sequence[Measured], twos: Sequence[Measured]) -> float:
    """Return the CPU time of a batch with one worker over that with two. Below 1, the workers slow
    each other down."""
    alone_s, concurrent_s = (float(np.mean(BatchCosts.of(runs).cpu_s)) for runs in (ones, twos))
    if not (alone_s > 0 and concurrent_s > 0):
        return 1.0
    return float(min(1.0, max(0.5, alone_s / concurrent_s)))


def has_waits(demands: Sequence[Demand]) -> bool:
    """Whether batches wait for anything while they are fetched."""
    waited_s = sum(each.link_bytes for each in demands)
    return waited_s > EQUAL_WITHIN * sum(each.link_bytes + each.cpu_s for each in demands)


def may_share_storage(columns: Columns) -> bool:
    """Whether a worker may wait for a storage that others share. It cannot where it was observed to
    read nothing, and its batches are too small to come from a storage that was not observed."""
    counted = np.nansum(columns.bytes) + np.nansum(columns.requests)
    read = np.nanmean(columns.logical_bytes) if not np.isnan(columns.logical_bytes).all() else inf
    if counted or read >= LEAST_BYTES_READ:
        return True
    size = np.nanmean(columns.batch_bytes) if not np.isnan(columns.batch_bytes).all() else 0.0
    return bool(size > _LEAST_FILE_SIZE * SLOWEST_LINK * np.mean(columns.made_s))


def _link(demands: Sequence[Demand], concurrent_waits: float, regains: bool) -> Link:
    """Return a link on which ``concurrent_waits`` workers can wait at full speed.

    One that regains can pass up to a batch more after it was idle. It then does not slow a single
    worker that fetches its batches one by one, even where ``concurrent_waits`` is below one.
    """
    if not regains:
        return Link(total=concurrent_waits, each=1.0)
    burst = float(np.mean([each.link_bytes for each in demands]))
    return Link(total=concurrent_waits, each=1.0, burst=burst, peak=inf)


def _wait_limits(
    demands: Sequence[Demand], machine: Machine, twos: Sequence[Measured]
) -> dict[bool, float]:
    """Return how many workers can wait concurrently at full speed, up to 2. It is infinite where
    two workers are as fast as if they shared nothing.

    The keys say whether what they wait for regains while it is idle. What does not regain has room
    for at least one worker.
    """
    setting, step_s, measured = twos[0].setting, twos[0].step_s(twos[0].setting), _rate(twos)

    def rate(limit: float, regains: bool) -> float:
        limited = replace(machine, link=_link(demands, limit, regains))
        return simulate_steady(demands, step_s, setting, limited).batches_per_s

    if rate(inf, False) <= measured * (1 + EQUAL_WITHIN):
        return {False: inf}
    limits = {}
    for regains, least in ((False, 1.0), (True, _LEAST_LIMIT)):
        low, high = least, 2.0
        if not regains and rate(low, False) > measured:
            continue
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (low, middle) if rate(middle, regains) > measured else (middle, high)
        limits[regains] = (low + high) / 2
    return limits
