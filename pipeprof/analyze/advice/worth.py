"""Compute the worth of each cause: the gain if it were 25 % cheaper, and if it were free.

Worth is not the wait that a cause is charged with. Workers overlap with each other and with the
training step, so a cheaper cause may gain more or less than that. Therefore the run is simulated
from its own batches, with the cost and with it cut. Without workers nothing overlaps, and
arithmetic is enough.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from math import exp, hypot, isnan, sqrt

import numpy as np

from pipeprof.analyze.advice.metrics import Facts
from pipeprof.analyze.advice.more_workers import Simulate
from pipeprof.analyze.predict.single_run import SingleRun
from pipeprof.analyze.predict.workload import Demand
from pipeprof.analyze.profile.batch_table import Columns, Floats, steady
from pipeprof.analyze.profile.drift import Drift
from pipeprof.analyze.profile.intervals import NORMAL_90
from pipeprof.analyze.profile.stage_times import CPU, RUN_QUEUE
from pipeprof.analyze.profile.stall_attribution import MAIN, PIN, SAMPLER, TRANSFER, WORKER_CPU
from pipeprof.analyze.profile.worker_activity import STAGES
from pipeprof.model import Speedup, Stage, Worth

QUARTER = 0.25
_LEAST_STALL_SHARE = 0.01
"""Share of the stall below which the worth of a cause is not computed."""
_LEAST_NOISE = 0.02
"""Standard deviation of a run's log rate, at the least."""
MODEL_ERROR = 0.15
"""Relative standard deviation of a predicted gain (`make bench-blame`)."""
_CAUSES = (*STAGES, WORKER_CPU, SAMPLER, MAIN, PIN, TRANSFER)
"""The causes whose worth can be computed."""
_DEFAULT_DRIFT = Drift(0.003, 0.003)
"""The drift of a run that is too short to measure it."""

Gains = Callable[[str, float], Sequence[float]]
"""Return the possible gains from cutting a cause by a share of it; empty where unknown."""


def worth(facts: Facts, simulate: Simulate) -> dict[str, Worth]:
    """Return the worth by cause, in the order of blame, without those that are unknown."""
    stall_s = facts.summary.sums["stall_s"]
    diagnosis = facts.diagnosis
    if diagnosis.verdict == "fed" or diagnosis.unjudged or not stall_s > 0:
        return {}
    causes = [name for name, seconds in facts.summary.charges.ranked_blame().items()
              if seconds >= _LEAST_STALL_SHARE * stall_s]  # fmt: skip
    gains = _gains(facts, simulate)
    found = ((name, gains(name, QUARTER), gains(name, 1.0)) for name in causes)
    noise = _noise(facts)
    return {
        name: Worth(_speedup(quarter, noise), _speedup(free, noise))
        for name, quarter, free in found if quarter and free
    }  # fmt: skip


def _speedup(gains: Sequence[float], noise: float) -> Speedup:
    gain = float(np.mean(gains))
    half = NORMAL_90 * hypot(noise, MODEL_ERROR * gain / (1 + gain))
    low, high = (1 + min(gains)) * exp(-half), (1 + max(gains)) * exp(half)
    return Speedup(gain, (low - 1, high - 1))


def _noise(facts: Facts) -> float:
    """Return the standard deviation of the log ratio of two runs that are as long as this one."""
    every = Columns.of(facts.recording.batches)
    cycle_s = every.take(steady(every, facts.recording.warmup_batches)).cycle_s
    drift = Drift.of(cycle_s) or _DEFAULT_DRIFT
    return sqrt(2 * (_LEAST_NOISE**2 + drift.lasting + drift.passing))


def _gains(facts: Facts, simulate: Simulate) -> Gains:
    if facts.limited:
        return partial(_gains_at_limited_rate, facts)
    if not facts.workers:
        return partial(_gains_inline, facts)
    run = simulate()
    return _SimulatedGains(facts, run).gains if run is not None else lambda cause, cut: ()


def _gains_at_limited_rate(facts: Facts, cause: str, cut: float) -> Sequence[float]:
    """Return the gains where a shared resource of a fixed rate limits the run. Only a cheaper use
    of it helps, up to the next limit."""
    if cause != facts.limited:
        return (0.0,) if cause in _CAUSES else ()
    waited_s = facts.stage_s(Stage.READ if facts.limited == Stage.READ else Stage.FETCH)
    next_limit_s = max(facts.step_s, max(0.0, facts.made_s - waited_s) / max(1, facts.workers))
    return (_gain(facts.cycle_s, min(cut * facts.cycle_s, facts.cycle_s - next_limit_s)),)


def _gains_inline(facts: Facts, cause: str, cut: float) -> Sequence[float]:
    """Return the gains without workers: a cycle of the loop is shorter by what is cut."""
    if cause not in _CAUSES or cause == TRANSFER:
        return ()
    charged_s = facts.blamed_s(cause)
    if cause == WORKER_CPU:  # less computing also means less waiting for a core
        charged_s += facts.cpu_s
    if isnan(charged_s):  # the counters were read for none of these batches
        return ()
    return (_gain(facts.cycle_s, cut * min(charged_s, facts.cycle_s - facts.step_s)),)


def _gain(cycle_s: float, saved_s: float) -> float:
    return cycle_s / max(cycle_s - saved_s, 1e-9) - 1


class _SimulatedGains:
    """Gains for one run with workers, by simulating its batches."""

    def __init__(self, facts: Facts, run: SingleRun) -> None:
        self._run = run
        columns = run.columns
        stages = {name: np.nan_to_num(getattr(columns, f"{name}_s")) for name in STAGES
                  if name != "fetch"}  # fmt: skip
        stages["fetch"] = np.maximum(0.0, columns.made_s - sum(stages.values()))
        computing = _computing(columns, stages)
        self._cpu_shares = _shares(stages, computing)
        waiting = _waiting_per_cpu(facts)
        self._blocked_shares = _shares(stages, {
            name: max(0.0, 1 - share * (1 + waiting)) for name, share in computing.items()
        })  # fmt: skip
        blocked_s = sum(facts.summary.charges.blocked_hand_over_s.values())
        all_s = blocked_s + facts.summary.charges.blame[TRANSFER]
        self._blocked = blocked_s / all_s if all_s > 0 else 0.0
        """Share of the wait for hand-overs that is for workers' interpreters and cores, 0..1."""

    def gains(self, cause: str, cut: float) -> Sequence[float]:
        """Return the gain from this cut for each meaning of the run; empty if unknown."""
        if cause in STAGES:
            return self._run.gains(partial(self._cut_stage, cause, cut))
        if cause in (MAIN, SAMPLER):
            return self._run.gains(partial(_cut_main, cut * self._main_s(cause)))
        if cause == PIN:
            return self._run.gains(partial(_cut_pinning, cut))
        if cause in (WORKER_CPU, TRANSFER):
            change = self._cut_cpu if cause == WORKER_CPU else self._cut_transfer
            return self._run.gains(partial(change, cut))
        return ()

    def _cut_stage(self, name: str, cut: float, demand: Demand, row: int) -> Demand:
        cpu_cut = cut * self._cpu_shares[name][row]
        blocked_cut = cut * self._blocked_shares[name][row]
        cpu_s, link_bytes = demand.cpu_s * (1 - cpu_cut), demand.link_bytes * (1 - blocked_cut)
        cheaper = replace(demand, cpu_s=cpu_s, link_bytes=link_bytes)
        return _cut_hand_over_waits(cheaper, cpu_cut * self._blocked)

    def _cut_cpu(self, cut: float, demand: Demand, row: int) -> Demand:
        cheaper = replace(demand, cpu_s=demand.cpu_s * (1 - cut))
        return _cut_hand_over_waits(cheaper, cut * self._blocked)

    def _cut_transfer(self, cut: float, demand: Demand, row: int) -> Demand:
        left = 1 - cut
        cheaper = replace(demand, send_s=demand.send_s * left, receive_s=demand.receive_s * left)
        return _cut_hand_over_waits(cheaper, cut * (1 - self._blocked))

    def _main_s(self, cause: str) -> float:
        """Return the seconds per batch that main spends on `SAMPLER` or `MAIN`."""
        columns = self._run.columns
        ready_s = np.where(np.isnan(columns.pinned_s), columns.arrived_s, columns.pinned_s)
        main_s = float(np.nanmean(columns.delivered_s - np.fmax(ready_s, columns.asked_s)))
        picking_s = float(np.mean(np.nan_to_num(columns.sampler_s)))
        return picking_s if cause == SAMPLER else max(0.0, main_s - picking_s)


def _computing(columns: Columns, stages: dict[str, Floats]) -> dict[str, float]:
    """Return the share of CPU time in each stage, 0..1; an unmeasured stage gets that of all."""
    cpu_s = {name: getattr(columns, f"{name}_cpu_s") for name in stages if name != "fetch"}
    sampled = np.isfinite(columns.cpu_s)
    made_s = columns.made_s[sampled].sum()
    overall = float(columns.cpu_s[sampled].sum() / made_s) if made_s > 0 else 0.0
    remaining_s = columns.cpu_s.copy()
    shares = {}
    for name, seconds in cpu_s.items():
        known = np.isfinite(seconds) & sampled
        total_s = stages[name][known].sum()
        shares[name] = float(seconds[known].sum() / total_s) if total_s > 0 else overall
        remaining_s -= np.where(np.isfinite(seconds), seconds, overall * stages[name])
    total_s = stages["fetch"][sampled].sum()
    shares["fetch"] = float(remaining_s[sampled].sum() / total_s) if total_s > 0 else overall
    return {name: min(1.0, max(0.0, share)) for name, share in shares.items()}


def _shares(stages: dict[str, Floats], weights: dict[str, float]) -> dict[str, Floats]:
    """Return each stage's weighted share per batch; those of all stages add up to 1 or 0."""
    weighted = {name: weights[name] * seconds for name, seconds in stages.items()}
    total = np.maximum(sum(weighted.values()), 1e-12)
    return {name: seconds / total for name, seconds in weighted.items()}


def _waiting_per_cpu(facts: Facts) -> float:
    """Return the seconds of waiting for a core per CPU second; 0 where unknown."""
    waiting, computing = facts.share(RUN_QUEUE), facts.share(CPU)
    return waiting / computing if waiting > 0 and computing > 0 else 0.0


def _cut_main(saved_s: float, demand: Demand, row: int) -> Demand:
    if demand.pin_s:  # a thread receives
        return replace(demand, take_s=max(0.0, demand.take_s - saved_s))
    return replace(demand, receive_s=max(0.0, demand.receive_s - saved_s))


def _cut_pinning(cut: float, demand: Demand, row: int) -> Demand:
    return replace(demand, pin_s=demand.pin_s * (1 - cut))


def _cut_hand_over_waits(demand: Demand, cut: float) -> Demand:
    """Return the demand with its waits in the hand-over cut by this share, 0..1."""
    left = 1 - cut
    return replace(
        demand,
        late_s=left * demand.late_s,
        send_blocked_s=left * demand.send_blocked_s if left else 0.0,
        receive_blocked_s=left * demand.receive_blocked_s if left else 0.0,
    )
