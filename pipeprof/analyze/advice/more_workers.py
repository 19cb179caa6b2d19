"""Predict how many more workers are worth it, and their gain, by simulating one run.

Where the run is too short to simulate, or the simulator does not model how its batches are built,
the roofline estimates the gain.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import ceil, isnan

from pipeprof.analyze.advice.metrics import Facts
from pipeprof.analyze.advice.proposal import PredictedEffect, Proposal
from pipeprof.analyze.advice.roofline_estimate import (
    batches_to_predict,
    best_workers,
    cores_are_the_limit,
    cpu_in_worker_s,
    least_cycle_s,
    most_workers,
    possible_workers,
    rate,
    release_s,
    sharing_s,
    work_in_worker_s,
)
from pipeprof.analyze.predict.run_hypotheses import RunContext
from pipeprof.analyze.predict.single_run import SingleRun
from pipeprof.analyze.predict.workload import Measured
from pipeprof.analyze.profile.batch_table import Columns, steady
from pipeprof.analyze.profile.storage_bottleneck import BANDWIDTH, LATENCY
from pipeprof.analyze.thresholds import (
    EQUAL_WITHIN,
    LEAST_BATCHES_TO_SIMULATE,
    LEAST_GAIN,
    SLOWEST_LINK,
)
from pipeprof.model import MOST_HALF_WIDTH, Cost

Simulate = Callable[[], SingleRun | None]
"""Return the run as the simulator repeats it; ``None`` where it cannot. Called only when needed,
since fitting takes time."""

_FEEDER_SHARE, _FEEDER_TRAVELS = 0.1, 2.0
"""Upper bound of the CPU time of threads that send batches: this share of the build time, plus so
many times the least transfer time. More native CPU time comes from other threads."""
_LEAST_MAIN_CORES = 0.3
"""Cores that the training process uses, below which it may only be starting workers."""
_RECENT_BATCHES = 1000
"""The last batches, from which the simulator predicts."""
_BEYOND_ROOFLINE = 1.5
"""Factor for the workers that the roofline wants, as bursts may need more."""


def simulated_run(facts: Facts) -> SingleRun | None:
    """Return a simulator of this run; ``None`` where it has too few batches. It is also ``None``
    where threads build batches that the simulator does not model."""
    feeder_s = _FEEDER_SHARE * facts.made_s + _FEEDER_TRAVELS * facts.travel_s
    if facts.native_share * facts.cpu_s > feeder_s or not facts.made_s > 0:
        return None
    every = Columns.of(facts.recording.batches)
    recent = steady(every, facts.recording.warmup_batches)
    recent[:-_RECENT_BATCHES] = False
    bottleneck = facts.diagnosis.bottleneck
    moved = facts.summary.sums["bytes"] / facts.summary.sums["wall_s"]
    main_s = facts.main_cores * facts.cycle_s if facts.main_cores >= _LEAST_MAIN_CORES else 0.0
    main_s -= facts.received_s if facts.workers else 0.0
    beyond_s = max(0.0, main_s - facts.host_step_s)  # a step may compute on several cores
    own_cores = facts.cores / facts.environment.ranks - beyond_s / facts.cycle_s
    return SingleRun.of(
        Measured(facts.setting, every.take(recent)),
        RunContext(
            cores=max(0.5, own_cores),
            main_cpu_s=main_s,
            least_transfer_s=facts.travel_s,
            sharing_s=sharing_s(facts),
            release_s=release_s(facts),
            room_for_more=bottleneck == LATENCY
            or (bottleneck != BANDWIDTH and 0 < moved <= SLOWEST_LINK),
        ),
    )


def more_workers(facts: Facts, simulate: Simulate) -> Proposal | None:
    """Propose enough workers to build batches as fast as anything else allows. Returns ``None``
    where more workers are not worth it."""
    if not (facts.starved and facts.made_s > 0) or facts.limited:
        return None
    wanted = best_workers(facts)
    if wanted <= facts.workers or rate(facts, wanted) < LEAST_GAIN * facts.rate:
        return None
    run = simulate()
    if run is None:
        return _by_roofline(facts, wanted)
    # the roofline knows neither bursts nor resources that workers use one after another
    most = min(ceil(wanted * _BEYOND_ROOFLINE), possible_workers(facts))
    wanted = run.enough(max(wanted, most), facts.diagnosis.threshold)
    predicted = facts.samples * run.predict(wanted).batches_per_s
    if wanted <= facts.workers or predicted < LEAST_GAIN * facts.rate:
        return None
    return by_simulation(facts, run, wanted)


def by_simulation(facts: Facts, run: SingleRun, workers: int) -> Proposal:
    """Propose this number of workers, with the outcome that ``run`` predicts."""
    predicted, more_batches = run.predict(workers), batches_to_predict(facts)
    if more_batches:
        outcome = PredictedEffect(cost=_cost(facts, workers, None))
        return _proposal(facts, workers, outcome, more_batches=more_batches)
    fills = bool(predicted.deciding_run) and run.shares
    unsure = fills or (bool(predicted.deciding_run) and predicted.half_width > MOST_HALF_WIDTH)
    no_step = not facts.diagnosis.has_step  # then nothing is starved
    low, high = (facts.samples * rate for rate in predicted.interval)
    samples_per_s = None if unsure else facts.samples * predicted.batches_per_s
    outcome = PredictedEffect(
        predicted_samples_per_s=samples_per_s,
        interval=(low, high),
        predicted_starved=None if unsure or no_step else predicted.starved_fraction,
        predicted_starved_interval=None if no_step else predicted.starved_interval,
        cost=_cost(facts, workers, samples_per_s),
    )
    return _proposal(
        facts, workers, outcome, simulated=True, fills=fills,
        left_open=None if fills else predicted.open_question or None,
        settle=predicted.deciding_run or None,
    )  # fmt: skip


def _by_roofline(facts: Facts, workers: int) -> Proposal:
    """Propose this number of workers for a run that cannot be simulated."""
    full, most = facts.diagnosis.bottleneck == BANDWIDTH, rate(facts, workers)
    least = rate(replace(facts, native_computes=True), workers)
    unsure = least < (1 - EQUAL_WITHIN) * most
    samples_per_s = None if full or unsure else most
    outcome = PredictedEffect(
        samples_per_s,
        interval=(least, most) if unsure and not full else None,
        cost=_cost(facts, workers, samples_per_s),
    )
    few = max(0, LEAST_BATCHES_TO_SIMULATE - facts.summary.measured)
    return _proposal(
        facts, workers, outcome, roofline=True, few_batches=few or None, fills=full,
        left_open="native-threads" if unsure else None,
    )  # fmt: skip


def _proposal(facts: Facts, workers: int, outcome: PredictedEffect, **figures: object) -> Proposal:
    limit = _next_limit(facts, workers)
    common = {
        "wanted": workers,
        "worker_rate": facts.samples / work_in_worker_s(facts),
        "demand": facts.samples / facts.step_s if facts.diagnosis.has_step else None,
        "must_share": facts.config.kind == "iterable" and not facts.workers,
        "by_memory": limit == "memory",
        "by_workers": limit == "workers",
        "by_cores": limit == "cores",
        "by_step": limit == "step",
        "by_main": limit == "main",
    }
    return Proposal("more-workers", "num_workers", {**common, **figures}, outcome)


def _next_limit(facts: Facts, workers: int) -> str:
    """Return what limits the rate with this number of workers."""
    if workers == most_workers(facts):
        return "memory"
    if work_in_worker_s(facts) / workers > 1.01 * least_cycle_s(facts):
        return "workers"
    if cores_are_the_limit(facts):
        return "cores"
    return "step" if facts.diagnosis.has_step else "main"


def _cost(facts: Facts, workers: int, samples_per_s: float | None) -> Cost:
    """Return the cores, RAM and shared memory that are needed beyond those of the run."""
    more, gauges = workers - facts.workers, facts.summary.gauges
    cores = None
    if samples_per_s is not None and not isnan(facts.cpu_s):
        cores = max(0.0, samples_per_s * cpu_in_worker_s(facts) - facts.rate * facts.cpu_s)
        cores /= facts.samples
    prefetched = more * facts.prefetch * facts.batch_bytes
    own = gauges["private_bytes"].mean if facts.workers else float("nan")
    ram = more * own + (0.0 if isnan(prefetched) else prefetched)
    return Cost(cores, *(None if isnan(size) else size for size in (ram, prefetched)))
