"""What each cost of a run is worth: the gain if it were 25 % cheaper, and if it were free.

How long a cost is waited for is another question: a worker that takes turns with others, or is
hidden behind the training step, gives back more or less than its share of the wait. So the run is
simulated from its own batches, with that cost cut and without. Without workers nothing overlaps,
and arithmetic is enough.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from math import exp, hypot, sqrt

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
_LEAST = 0.01
"""Of the stall: what is charged less is not worth a figure."""
_ALWAYS_BUSY = 0.9
"""Of the time: a thread that is the limit."""
_NOISE = 0.02
"""One standard deviation of a run's log rate, at the least."""
_MODEL = 0.15
"""Of a gain, by which it is off: one standard deviation (`make bench-blame`)."""
_CAUSES = (*STAGES, WORKER_CPU, SAMPLER, MAIN, PIN, TRANSFER)
"""Whose worth can be reckoned."""
_UNKNOWN = Drift(0.003, 0.003)
"""Of a run that is too short to tell."""

Gains = Callable[[str, float], Sequence[float]]
"""Of a cause, and the share of it that is cut: the gains that the run may mean, if any."""


def worth(facts: Facts, simulate: Simulate) -> dict[str, Worth]:
    """By cause, in the order of blame. Causes of which nothing can be said are left out."""
    stall_s = facts.summary.sums["stall_s"]
    if facts.diagnosis.verdict == "fed" or not stall_s > 0:
        return {}
    large = [name for name, seconds in facts.summary.ranked_blame().items()
             if seconds >= _LEAST * stall_s]  # fmt: skip
    gains = _gains(facts, simulate)
    found = ((name, gains(name, QUARTER), gains(name, 1.0)) for name in large)
    noise = _noise(facts)
    return {
        name: Worth(_speedup(quarter, noise), _speedup(free, noise))
        for name, quarter, free in found if quarter and free
    }  # fmt: skip


def _speedup(gains: Sequence[float], noise: float) -> Speedup:
    gain = float(np.mean(gains))
    half = NORMAL_90 * hypot(noise, _MODEL * gain / (1 + gain))
    low, high = (1 + min(gains)) * exp(-half), (1 + max(gains)) * exp(half)
    return Speedup(gain, (low - 1, high - 1))


def _noise(facts: Facts) -> float:
    """One standard deviation of the log of what two runs differ by, as long as this one was."""
    every = Columns.of(facts.recording.batches)
    cycle_s = every.take(steady(every, facts.recording.warmup_batches)).cycle_s
    drift = Drift.of(cycle_s) or _UNKNOWN
    return sqrt(2 * (_NOISE**2 + drift.lasting + drift.passing))


def _gains(facts: Facts, simulate: Simulate) -> Gains:
    if facts.limited:
        return partial(_of_limited, facts)
    if not facts.workers:
        return partial(_inline, facts)
    run = simulate()
    return _Simulated(facts, run).gains if run is not None else lambda cause, cut: ()


def _of_limited(facts: Facts, cause: str, cut: float) -> Sequence[float]:
    """Batches come at the rate of what gives so much a second: less of that is all that helps,
    until the next limit."""
    if cause != facts.limited:
        return (0.0,) if cause in _CAUSES else ()
    waited_s = facts.stage_s(Stage.READ if facts.limited == Stage.READ else Stage.FETCH)
    train_s = facts.cycle_s - facts.per_batch(facts.summary.sums["stall_s"])
    rest_s = max(train_s, max(0.0, facts.made_s - waited_s) / max(1, facts.workers))
    return (_shorter(facts.cycle_s, min(cut * facts.cycle_s, facts.cycle_s - rest_s)),)


def _inline(facts: Facts, cause: str, cut: float) -> Sequence[float]:
    """A turn of the loop is shorter by what is cut."""
    if cause not in _CAUSES or cause == TRANSFER:
        return ()
    charged_s = facts.blamed_s(cause)
    if cause == WORKER_CPU:  # less to compute is also less to wait for
        charged_s += facts.cpu_s
    return (_shorter(facts.cycle_s, cut * min(charged_s, facts.cycle_s - facts.step_s)),)


def _shorter(turn_s: float, by_s: float) -> float:
    return turn_s / max(turn_s - by_s, 1e-9) - 1


class _Simulated:
    """The batches of one run, made and handed over by workers."""

    def __init__(self, facts: Facts, run: SingleRun) -> None:
        self._facts, self._run = facts, run
        columns = run.columns
        stages = {name: np.nan_to_num(getattr(columns, f"{name}_s")) for name in STAGES
                  if name != "fetch"}  # fmt: skip
        stages["fetch"] = np.maximum(0.0, columns.made_s - sum(stages.values()))
        computing = _computing(columns, stages)
        self._of_cpu = _shares(stages, computing)
        waiting = _waiting_per_cpu(facts)
        self._of_blocked = _shares(stages, {
            name: max(0.0, 1 - share * (1 + waiting)) for name, share in computing.items()
        })  # fmt: skip
        blocked_s = sum(facts.summary.blocked_hand_over_s.values())
        transfer_s = facts.summary.blame[TRANSFER]
        self._blocked_share = (
            blocked_s / (blocked_s + transfer_s) if blocked_s + transfer_s > 0 else 0.0
        )
        """Of what hand-overs waited for: workers' interpreters, and cores."""

    def gains(self, cause: str, cut: float) -> Sequence[float]:
        """Of each meaning of the run, with this share of the cost cut; empty if unknown."""
        if cause == PIN:
            return self._pinned(cut)
        if cause in STAGES:
            return self._run.gains(partial(self._of_stage, cause, cut))
        if cause in (MAIN, SAMPLER):
            return self._run.gains(partial(_of_main, cut * self._main_s(cause)))
        if cause in (WORKER_CPU, TRANSFER):
            change = self._of_cores if cause == WORKER_CPU else self._of_transfer
            return self._run.gains(partial(change, cut))
        return ()

    def _of_stage(self, name: str, cut: float, demand: Demand, row: int) -> Demand:
        of_cpu, of_blocked = cut * self._of_cpu[name][row], cut * self._of_blocked[name][row]
        cpu_s, link_bytes = demand.cpu_s * (1 - of_cpu), demand.link_bytes * (1 - of_blocked)
        cheaper = replace(demand, cpu_s=cpu_s, link_bytes=link_bytes)
        return _sooner(cheaper, of_cpu * self._blocked_share)

    def _of_cores(self, cut: float, demand: Demand, row: int) -> Demand:
        return _sooner(replace(demand, cpu_s=demand.cpu_s * (1 - cut)), cut * self._blocked_share)

    def _of_transfer(self, cut: float, demand: Demand, row: int) -> Demand:
        left = 1 - cut
        own = replace(demand, send_s=demand.send_s * left, receive_s=demand.receive_s * left)
        return _sooner(own, cut * (1 - self._blocked_share))

    def _main_s(self, cause: str) -> float:
        """Of main, for each batch that it hands out."""
        columns = self._run.columns
        free_s = np.where(np.isnan(columns.pinned_s), columns.arrived_s, columns.pinned_s)
        rest_s = float(np.nanmean(columns.delivered_s - np.fmax(free_s, columns.asked_s)))
        picked_s = float(np.mean(np.nan_to_num(columns.sampler_s)))
        return picked_s if cause == SAMPLER else max(0.0, rest_s - picked_s)

    def _pinned(self, cut: float) -> Sequence[float]:
        """One thread receives and pins one batch after another, beside the training."""
        facts, columns = self._facts, self._run.columns
        turn_s = facts.cycle_s
        pinned_s = float(np.nanmean(columns.pinned_s - columns.arrived_s))
        busy_s = pinned_s + float(np.nanmean(columns.arrived_s - columns.received_s))
        if busy_s < _ALWAYS_BUSY * turn_s:
            return (_shorter(turn_s, cut * facts.blamed_s(PIN)),)
        stall_s = facts.per_batch(facts.summary.sums["stall_s"])
        return (_shorter(turn_s, min(cut * pinned_s, stall_s)),)


def _computing(columns: Columns, stages: dict[str, Floats]) -> dict[str, float]:
    """Of each stage, the share that is CPU time; where nobody clocked it, that of all of them."""
    cpu_s = {name: getattr(columns, f"{name}_cpu_s") for name in stages if name != "fetch"}
    seen = np.isfinite(columns.cpu_s)
    made_s = columns.made_s[seen].sum()
    every = float(columns.cpu_s[seen].sum() / made_s) if made_s > 0 else 0.0
    rest_s = columns.cpu_s.copy()
    shares = {}
    for name, seconds in cpu_s.items():
        known = np.isfinite(seconds) & seen
        whole_s = stages[name][known].sum()
        shares[name] = float(seconds[known].sum() / whole_s) if whole_s > 0 else every
        rest_s -= np.where(np.isfinite(seconds), seconds, every * stages[name])
    whole_s = stages["fetch"][seen].sum()
    shares["fetch"] = float(rest_s[seen].sum() / whole_s) if whole_s > 0 else every
    return {name: min(1.0, max(0.0, share)) for name, share in shares.items()}


def _shares(stages: dict[str, Floats], weights: dict[str, float]) -> dict[str, Floats]:
    """Of each batch, so that those of all stages add up to 1, or to 0."""
    weighed = {name: weights[name] * seconds for name, seconds in stages.items()}
    whole = np.maximum(sum(weighed.values()), 1e-12)
    return {name: seconds / whole for name, seconds in weighed.items()}


def _waiting_per_cpu(facts: Facts) -> float:
    """Seconds of waiting for a core, for each second of computing; 0 where unknown."""
    waiting, computing = facts.share(RUN_QUEUE), facts.share(CPU)
    return waiting / computing if waiting > 0 and computing > 0 else 0.0


def _of_main(by_s: float, demand: Demand, row: int) -> Demand:
    return replace(demand, receive_s=max(0.0, demand.receive_s - by_s))


def _sooner(demand: Demand, by: float) -> Demand:
    """With so much less waiting in its hand-over, 0..1."""
    left = 1 - by
    return replace(
        demand,
        late_s=left * demand.late_s,
        send_blocked_s=left * demand.send_blocked_s if left else 0.0,
        receive_blocked_s=left * demand.receive_blocked_s if left else 0.0,
    )
