"""Simulate a job of many ranks from the profile of one of them.

Each rank loads for itself and does its step, and a step ends for all ranks when the slowest one is
done, as with an all-reduce. The ranks run through the recorded batches from different ones on. A
large job meets batches that are rarer than one run shows: the tails are continued by a generalised
Pareto distribution (Pickands, Annals of Statistics 3, 1975).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from pipeprof.analyze.profile.batch_table import Columns, Floats, steady
from pipeprof.model import Profile

LEAST_BATCHES = 40
"""Fewer recorded batches show no tail."""
STEPS = 300
"""Simulated steps of a job, without its warm-up."""
_WARMUP = 8
ROUNDS = 20
"""Simulations of each job, of recorded batches that are drawn again."""
_BLOCK = 8
"""Consecutive batches that are drawn together, as neighbours are alike."""
_TAIL = 0.9
"""The quantile from which on batches are of the tail."""
_MACHINE = 0.05
"""Relative error of a pace by what is not simulated; ``make bench-scale`` measures it."""
_MOST_SHAPE = 0.5
"""Bound of the tail's shape, beyond which few batches cannot tell it."""


@dataclass(frozen=True)
class RankCosts:
    """What one rank spends on its batches. [batches], seconds."""

    made_s: Floats
    """Fetching and collating."""
    step_s: Floats
    hand_over_s: float
    """From the end of collating until main has the batch."""
    workers: int
    in_flight: int
    """Batches that are asked for in advance."""

    @classmethod
    def of(cls, profile: Profile) -> RankCosts | None:
        """Return the costs that a profile shows; ``None`` where it recorded too few batches."""
        table = Columns.of(profile.batches)
        table = table.take(steady(table, _WARMUP) & np.isfinite(table.made_s))
        if len(table) < LEAST_BATCHES:
            return None
        workers = profile.config.num_workers
        late_s = table.delivered_s - table.fetch_end_s
        waited = table.delivered_s - table.asked_s > np.maximum(late_s, 0.0)
        step_s = table.cycle_s - table.stall_s
        job = profile.environment.job
        if job is not None and (job.world_size or 1) > 1:
            # the steps of a job hold waits for other ranks: what they take alone is the least
            step_s = np.full(len(table), np.quantile(step_s, 0.1))
        return cls(
            made_s=table.made_s,
            step_s=step_s,
            hand_over_s=float(np.median(late_s[waited])) if workers and waited.any() else 0.0,
            workers=workers,
            in_flight=workers * (profile.config.prefetch_factor or 2),
        )


@dataclass(frozen=True)
class ScaledJob:
    """A job of ``ranks``, as shares of its time. 0..1"""

    ranks: int
    cycle_s: float
    """Seconds of a step with its wait."""
    cycle_interval_s: tuple[float, float]
    useful: float
    """The mean step of a rank."""
    sync: float
    """Exchanging gradients."""
    slowest_step: float
    """Waiting for the slowest step of any rank."""
    loading: float
    """Waiting for data that all ranks would wait for if every batch took equally long."""
    tails: float
    """Waiting because some rank has a late batch."""
    storage: float
    """Waiting because all ranks together want more than the storage gives."""
    useful_interval: tuple[float, float]


def scale_job(
    costs: RankCosts, ranks: int, storage_s: float = 0.0, sync_s: float = 0.0, seed: int = 0
) -> ScaledJob:
    """Simulate a job of so many ranks like this one.

    Args:
        costs: What the measured rank spends.
        ranks: Ranks of the job.
        storage_s: Seconds in which the storage gives the batches of a step to all of them.
        sync_s: Seconds that ranks spend on exchanging gradients, beyond the steps of ``costs``.
        seed: Of the random numbers.
    """
    rounds = []
    for number in range(ROUNDS):
        random = np.random.default_rng([seed, number, ranks])
        # the first one is of the batches as they were
        drawn = costs if number == 0 else _drawn_again(costs, random)
        levels = _cycles(drawn, ranks, storage_s, sync_s, random)
        rounds.append(np.diff(np.maximum.accumulate(levels), prepend=0.0))
    parts = np.array(sorted(rounds, key=sum))
    cycles_s = parts.sum(axis=1)
    # few of the rounds have a batch that is later than all others: the mean would be of these
    middle = parts[ROUNDS // 4 : -(ROUNDS // 4)].mean(axis=0)
    useful, sync, slowest_step, loading, tails, storage = (middle / middle.sum()).tolist()
    low, high = _interval(parts[:, 0] / cycles_s)
    return ScaledJob(
        ranks=ranks,
        cycle_s=float(middle.sum()),
        cycle_interval_s=_interval(cycles_s),
        useful=useful,
        useful_interval=(low, min(1.0, high)),
        sync=sync,
        slowest_step=slowest_step,
        loading=loading,
        tails=tails,
        storage=storage,
    )


def _cycles(
    costs: RankCosts, ranks: int, storage_s: float, sync_s: float, random: np.random.Generator
) -> list[float]:
    """Return the seconds of a step with nothing to wait for. Then follow those with one more cost
    each: the exchange of gradients, the slowest step of all ranks, loading of even batches, late
    batches, the shared storage."""
    steps = costs.in_flight + _WARMUP + STEPS
    shifts = random.integers(len(costs.made_s), size=ranks)
    rows = (shifts[:, None] + np.arange(steps)) % len(costs.made_s)
    step_s = _tailed(costs.step_s, rows, random)
    made_s = _tailed(costs.made_s, rows, random)
    even_s = np.full_like(made_s, made_s.mean())
    useful_s, step_s = float(step_s.mean()), step_s + sync_s
    cycle_s = _run(costs, made_s, step_s)
    return [
        useful_s,
        useful_s + sync_s,
        float(step_s.max(axis=0).mean()),
        _run(costs, even_s, step_s),
        cycle_s,
        max(cycle_s, storage_s),
    ]


def _run(costs: RankCosts, made_s: Floats, step_s: Floats) -> float:
    """Return the seconds of a step, with its wait, in a job whose ranks' batches cost ``made_s``.

    It follows torch's rules: worker ``i mod W`` makes batch ``i``, as soon as it is free and batch
    ``i - in_flight`` was handed out. [ranks, batches], seconds.
    """
    ranks, steps = made_s.shape
    free_s = np.zeros((max(1, costs.workers), ranks))
    taken_s = np.zeros((max(1, costs.in_flight), ranks))
    now_s, begun_s = 0.0, 0.0
    first = costs.in_flight + _WARMUP
    for batch in range(steps):
        if batch == first:
            begun_s = now_s
        if costs.workers:
            worker, slot = batch % costs.workers, batch % costs.in_flight
            free_s[worker] = np.maximum(free_s[worker], taken_s[slot]) + made_s[:, batch]
            taken_s[slot] = np.maximum(free_s[worker] + costs.hand_over_s, now_s)
            now_s = float((taken_s[slot] + step_s[:, batch]).max())
        else:
            now_s = float((now_s + made_s[:, batch] + step_s[:, batch]).max())
    cycle_s: float = (now_s - begun_s) / (steps - first)
    return cycle_s


def _tailed(
    values: Floats,
    rows: np.ndarray[tuple[int, int], np.dtype[np.int64]],
    random: np.random.Generator,
) -> Floats:
    """Return ``values`` at ``rows``, where those of the tail are drawn from its distribution."""
    drawn = values[rows]
    threshold = float(np.quantile(values, _TAIL))
    beyond = np.sort(values[values > threshold] - threshold)
    if len(beyond) < 4:
        return drawn
    shape, scale = _pareto(beyond)
    late = drawn > threshold
    chance = random.random(int(late.sum()))
    excess = -scale * np.log(chance) if abs(shape) < 1e-6 else scale / shape * (chance**-shape - 1)
    drawn[late] = threshold + excess
    return drawn


def _pareto(excess: Floats) -> tuple[float, float]:
    """Fit a generalised Pareto distribution to ascending values, by probability-weighted moments
    (Hosking and Wallis, Technometrics 29, 1987). Returns its shape and scale."""
    count = len(excess)
    mean = float(excess.mean())
    weighted = float((excess * (1 - (np.arange(1, count + 1) - 0.35) / count)).mean())
    if mean <= 2 * weighted:
        return 0.0, mean
    shape = float(np.clip(2 - mean / (mean - 2 * weighted), -_MOST_SHAPE, _MOST_SHAPE))
    return shape, mean * (1 - shape)


def _drawn_again(costs: RankCosts, random: np.random.Generator) -> RankCosts:
    """Return costs of as many batches, drawn in blocks of neighbours from those recorded."""
    count = len(costs.made_s)
    firsts = random.integers(count, size=-(-count // _BLOCK))
    rows = ((firsts[:, None] + np.arange(_BLOCK)) % count).ravel()[:count]
    return replace(costs, made_s=costs.made_s[rows], step_s=costs.step_s[rows])


def _interval(values: Floats) -> tuple[float, float]:
    """Return between which values 95 % of these lie, widened by the error of the simulation."""
    low, high = np.quantile(values, [0.025, 0.975]).tolist()
    return low * (1 - _MACHINE), high * (1 + _MACHINE)
