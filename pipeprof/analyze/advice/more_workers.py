"""How many more workers are worth it, and what they would bring: by the simulator, from one run.

Where the run is too short to simulate, or its batches are made in a way that the simulator does not
know, the roofline estimates it.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, isnan

from pipeprof.analyze.advice.metrics import Facts
from pipeprof.analyze.advice.proposal import PredictedEffect, Proposal
from pipeprof.analyze.advice.roofline_estimate import (
    best_workers,
    cores_are_the_limit,
    least_turn_s,
    most_workers,
    rate,
    room_for,
    slow_ones_wanted,
)
from pipeprof.analyze.predict.run_hypotheses import RunContext
from pipeprof.analyze.predict.single_run import SingleRun
from pipeprof.analyze.predict.workload import Measured, Setting
from pipeprof.analyze.profile.batch_table import Columns, steady
from pipeprof.analyze.profile.storage_bottleneck import BANDWIDTH, LATENCY
from pipeprof.analyze.thresholds import LEAST_BATCHES_TO_SIMULATE, LEAST_GAIN, SLOWEST_LINK
from pipeprof.model import Cost

Simulate = Callable[[], SingleRun | None]
"""The run as the simulator repeats it. A call, since to fit it takes time, and few need it."""

_NATIVE, _FEEDER = 0.1, 2.0
"""Of the time to make a batch, and times its way at the least: more CPU time of other threads than
those that send batches take."""
_COMPUTES = 0.3
"""Of a core: less CPU time of the training process may be that of starting workers."""
_RECENT = 1000
"""Batches to predict from: the last ones."""
_BEYOND = 1.5
"""Times what the roofline wants are looked at, as bursts may want more."""
_WIDE = 0.3
"""Relatively: so wide an interval is reported as a range, if one more run would narrow it."""


def simulated_run(facts: Facts) -> SingleRun | None:
    """What the batches say of other numbers of workers; ``None``: too little, or they are made by
    threads that the simulator does not know."""
    feeder_s = _NATIVE * facts.made_s + _FEEDER * facts.travel_s
    if facts.native_share * facts.cpu_s > feeder_s or not facts.made_s > 0:
        return None
    every = Columns.of(facts.recording.batches)
    recent = steady(every, facts.recording.warmup_batches)
    recent[:-_RECENT] = False
    where = facts.diagnosis.bottleneck
    moved = facts.summary.sums["bytes"] / facts.summary.sums["wall_s"]
    main_s = facts.main_cores * facts.cycle_s if facts.main_cores >= _COMPUTES else 0.0
    main_s -= facts.received_s if facts.workers else 0.0
    beyond_s = max(0.0, main_s - facts.step_s)  # as of a step that computes on several cores
    own_cores = facts.cores / facts.environment.ranks - beyond_s / facts.cycle_s
    return SingleRun.of(
        Measured(Setting(facts.workers, facts.prefetch, facts.config.in_order), every.take(recent)),
        RunContext(
            cores=max(0.5, own_cores),
            main_cpu_s=main_s,
            least_transfer_s=facts.travel_s,
            pinned=facts.config.pin_memory,
            room_for_more=where == LATENCY or (where != BANDWIDTH and 0 < moved <= SLOWEST_LINK),
        ),
    )


def more_workers(facts: Facts, simulate: Simulate) -> Proposal | None:
    """Enough of them to make batches as fast as anything else allows; ``None``: no more of them are
    worth it."""
    if not (facts.starved and facts.made_s > 0) or facts.limited:
        return None
    wanted = best_workers(facts)
    if wanted <= facts.workers or rate(facts, wanted) < LEAST_GAIN * facts.rate:
        return None
    run = simulate()
    if run is None:
        return _by_roofline(facts, wanted)
    # the roofline knows no bursts, and nothing that workers wait for in turn
    most = min(ceil(wanted * _BEYOND), room_for(facts))
    wanted = run.enough(max(wanted, most), facts.diagnosis.threshold)
    brings = facts.samples * run.predict(wanted).batches_per_s
    if wanted <= facts.workers or brings < LEAST_GAIN * facts.rate:
        return None
    return expected(facts, run, wanted)


def expected(facts: Facts, run: SingleRun, workers: int) -> Proposal:
    """To set so many workers, with what that would bring by the simulated ``run``."""
    predicted, more_batches = run.predict(workers), slow_ones_wanted(facts)
    if more_batches:
        outcome = PredictedEffect(cost=_cost(facts, workers, None))
        return _change(facts, workers, outcome, more_batches=more_batches)
    fills = bool(predicted.deciding_run) and run.shares
    doubt = fills or (bool(predicted.deciding_run) and predicted.half_width > _WIDE)
    alone = not facts.diagnosis.has_step  # then nothing is starved
    low, high = (facts.samples * rate for rate in predicted.interval)
    samples_per_s = None if doubt else facts.samples * predicted.batches_per_s
    outcome = PredictedEffect(
        predicted_samples_per_s=samples_per_s,
        interval=(low, high),
        predicted_starved=None if doubt or alone else predicted.starved_fraction,
        predicted_starved_interval=None if alone else predicted.starved_interval,
        cost=_cost(facts, workers, samples_per_s),
    )
    return _change(
        facts, workers, outcome, simulated=True, fills=fills,
        left_open=None if fills else predicted.open_question or None,
        settle=predicted.deciding_run or None,
    )  # fmt: skip


def _by_roofline(facts: Facts, workers: int) -> Proposal:
    """Without batches to simulate."""
    full = facts.diagnosis.bottleneck == BANDWIDTH
    samples_per_s = None if full else rate(facts, workers)
    outcome = PredictedEffect(samples_per_s, cost=_cost(facts, workers, samples_per_s))
    few = max(0, LEAST_BATCHES_TO_SIMULATE - facts.summary.measured)
    return _change(facts, workers, outcome, roofline=True, few_batches=few or None, fills=full)


def _change(facts: Facts, workers: int, outcome: PredictedEffect, **figures: object) -> Proposal:
    limit = _next_limit(facts, workers)
    given = {
        "wanted": workers,
        "worker_rate": facts.samples / facts.work_s,
        "demand": facts.samples / facts.step_s if facts.diagnosis.has_step else None,
        "must_share": facts.config.kind == "iterable" and not facts.workers,
        "by_memory": limit == "memory",
        "by_workers": limit == "workers",
        "by_cores": limit == "cores",
        "by_step": limit == "step",
        "by_main": limit == "main",
    }
    return Proposal("more-workers", "num_workers", {**given, **figures}, outcome)


def _next_limit(facts: Facts, workers: int) -> str:
    """What would be the limit with so many workers."""
    if workers == most_workers(facts):
        return "memory"
    if facts.work_s / workers > 1.01 * least_turn_s(facts):
        return "workers"
    if cores_are_the_limit(facts):
        return "cores"
    return "step" if facts.diagnosis.has_step else "main"


def _cost(facts: Facts, workers: int, samples_per_s: float | None) -> Cost:
    """Beyond what the run took."""
    more, gauges = workers - facts.workers, facts.summary.gauges
    cores = None
    if samples_per_s is not None and not isnan(facts.cpu_s):
        cores = max(0.0, (samples_per_s - facts.rate) / facts.samples * facts.cpu_s)
    under_way = more * facts.prefetch * facts.batch_bytes
    own = gauges["private_bytes"].mean if facts.workers else float("nan")
    ram = more * own + (0.0 if isnan(under_way) else under_way)
    return Cost(cores, *(None if isnan(size) else size for size in (ram, under_way)))
