"""Compute the capacity that would feed the accelerator where no number of workers does.

All figures are rooflines of one run. The demand R of the accelerator in samples/s is one batch per
training step, except in the tolerated starved fraction θ of the time: R = (1 − θ) × samples / step.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil, hypot, isfinite, sqrt

from pipeprof.analyze.advice import roofline_estimate
from pipeprof.analyze.advice.findings.reading import read_bytes
from pipeprof.analyze.advice.metrics import Facts
from pipeprof.analyze.advice.proposal import Figures, PredictedEffect, Proposal
from pipeprof.analyze.profile.intervals import NORMAL_90
from pipeprof.analyze.profile.stage_times import BLOCKED, CPU
from pipeprof.analyze.profile.storage_bottleneck import BANDWIDTH, LATENCY
from pipeprof.analyze.thresholds import (
    DRIFT_OF_COMPUTING,
    DRIFT_OF_HAND_OVER,
    LEAST_GAIN,
    MANY_TENSORS,
    MOST_CORES,
    MOST_GAIN,
    MOSTLY,
    SLOWEST_LINK,
)
from pipeprof.model import Cost

_TOLERANCE = 0.05
"""A rate that is less than this share below the demand still counts as feeding the accelerator."""
_MOST_MODEL_ERROR = 0.15
"""Relative difference between the model's rate and the measured one. If it is larger, handing over
batches does not explain the rate, and there is another cause."""
_MOST_TIMES_AS_LARGE = 64
"""Largest factor for the batch size. Beyond it, a training step is too different."""


def capacities(facts: Facts) -> Iterator[Proposal]:
    """Yield a proposal for each resource that is short of the demand; none without an accelerator.
    A loop without a training step has no demand."""
    if not facts.diagnosis.has_step:
        return
    for capacity in (cores, storage, batch_size):
        yield from capacity(facts)


def feeds(facts: Facts, proposals: Sequence[Proposal]) -> bool:
    """Return whether one of ``proposals`` is predicted to feed the accelerator."""
    enough = (1 - _TOLERANCE) * _demand(facts)
    return any((each.outcome.predicted_samples_per_s or 0.0) >= enough for each in proposals)


def cores(facts: Facts) -> Iterator[Proposal]:
    """Propose R × CPU time of a sample cores, plus those that the training process uses."""
    has, main = facts.cores / facts.environment.ranks, facts.main_cores
    wanted = _demand(facts) * facts.cpu_s / facts.samples + main
    if not LEAST_GAIN * has < wanted <= min(MOST_GAIN * has, max(MOST_CORES, has)):
        return
    half = NORMAL_90 * hypot(DRIFT_OF_COMPUTING, _relative_error(facts)) * (wanted - main)
    figures = {
        "demand": _demand(facts),
        "has": has,
        "wanted": wanted,
        "low": wanted - half,
        "high": wanted + half,
        "cpu_a_sample": facts.cpu_s / facts.samples,
        "more": wanted - has,
        "cheaper": facts.cores_left / (wanted - main),
    }
    yield Proposal("more-cores", "cores", figures)


def storage(facts: Facts) -> Iterator[Proposal]:
    """Propose R × bytes of a sample as bandwidth, or the concurrent requests by Little's law. The
    latter are R × requests of a sample × latency of a request."""
    if not facts.rate < _demand(facts) <= MOST_GAIN * facts.rate:
        return
    requests, part, sums = facts.requests, facts.diagnosis.bottleneck, facts.summary.sums
    if requests is not None and part == LATENCY:
        a_sample = sums["requests"] / sums["samples"]
        figures: Figures = {
            "demand": _demand(facts),
            "a_sample": a_sample,
            "wanted": _demand(facts) * a_sample * requests.latency_s.mean,
        }
        yield Proposal("more-requests", "concurrent requests", figures)
        return
    # without recorded requests, the bytes of read calls
    size = read_bytes(facts) / facts.samples
    if requests is not None and sums["bytes"]:
        size = sums["bytes"] / sums["samples"]
    waits = facts.blamed_on_workers >= MOSTLY and facts.share(BLOCKED) >= MOSTLY
    sure = part == BANDWIDTH or facts.limited is not None
    if size > 0 and (sure or (waits and size * facts.rate > SLOWEST_LINK)):
        yield Proposal("more-bandwidth", "storage bandwidth", _bandwidth(facts, size, sure))


def _bandwidth(facts: Facts, size: float, sure: bool) -> Figures:
    """Return the figures of ``size`` bytes per sample; ``sure``: bandwidth is what is short."""
    times, source = _demand(facts) / facts.rate, facts.recording.source
    return {
        "demand": _demand(facts),
        "now": facts.rate * size,
        "wanted": _demand(facts) * size,
        "times": times,
        "size": size,
        "fewer": 1 / times,
        "copied_s": source.bytes / (facts.rate * size) if source else None,
        "sure": sure,
    }


def batch_size(facts: Facts) -> Iterator[Proposal]:
    """Propose batches k times as large, with k = h (1 − θ) / (θ step). Handing a batch over takes h
    seconds, whatever its size; a step on k times the samples takes k times as long."""
    handed_s = facts.picking_s
    handed_s += 0.0 if facts.config.pin_memory else roofline_estimate.receiving_s(facts)
    times = _times_as_large(facts, handed_s)
    if not 1 < times <= _MOST_TIMES_AS_LARGE or not 1 <= facts.tensors < MANY_TENSORS:
        return
    now = _larger_batch_rate(facts, 1, handed_s)
    predicted = _larger_batch_rate(facts, times, handed_s)
    if predicted < LEAST_GAIN * now or abs(now / facts.rate - 1) > _MOST_MODEL_ERROR:
        return
    size = round(facts.samples)
    figures = {
        "now": size,
        "wanted": times * size,
        "times": times,
        "handed_s": handed_s,
        "ours": facts.recording.source is not None,
    }
    outcome = _larger_batch_outcome(facts, times, handed_s, predicted)
    yield Proposal("batch-size", "batch_size", figures, outcome)


def _larger_batch_outcome(
    facts: Facts, times: float, handed_s: float, predicted: float
) -> PredictedEffect:
    """Return ``predicted`` samples/s with its interval, by how much times drift between runs."""
    low, high = (
        (1 - sign * DRIFT_OF_COMPUTING)
        * _larger_batch_rate(facts, times, handed_s * (1 + sign * DRIFT_OF_HAND_OVER))
        for sign in (1, -1)
    )
    demand = facts.samples / facts.step_s
    prefetched = (times - 1) * facts.workers * facts.prefetch * facts.batch_bytes
    return PredictedEffect(
        predicted_samples_per_s=predicted,
        interval=(low, high),
        predicted_starved=1 - predicted / demand,
        predicted_starved_interval=(max(0.0, 1 - high / demand), 1 - low / demand),
        cost=Cost(None, prefetched, prefetched) if isfinite(prefetched) else None,
    )


def _demand(facts: Facts) -> float:
    """Return what the accelerator can take, in samples/s; infinity where it is unknown."""
    if not facts.step_s > 0:
        return float("inf")
    return (1 - facts.diagnosis.threshold) * facts.samples / facts.step_s


def _relative_error(facts: Facts) -> float:
    """Return the standard error of the mean CPU time of a batch, relative to it."""
    cpu = facts.summary.resources[CPU]
    low, high = cpu.quantiles(0.16, 0.84)
    return (high - low) / 2 / cpu.mean / sqrt(cpu.count) if cpu.count and cpu.mean else 0.0


def _times_as_large(facts: Facts, handed_s: float) -> int:
    """Return k; 0 where there are no workers, or where the time of handing over is unknown."""
    allowed = facts.diagnosis.threshold
    if not facts.workers or not allowed * facts.step_s > 0 or not handed_s > 0:
        return 0
    times = handed_s * (1 - allowed) / (allowed * facts.step_s)
    return ceil(min(times, 1.0 + _MOST_TIMES_AS_LARGE) - 1e-9)


def _larger_batch_rate(facts: Facts, times: float, handed_s: float) -> float:
    """Return the samples/s of larger batches, within what workers and cores can build. ``handed_s``
    is the time to hand one batch over, in seconds."""
    made_s, computed_s = facts.work_s / facts.workers, facts.cpu_s / facts.cores_left
    cycle_s = max(handed_s + times * facts.step_s, times * made_s)
    if computed_s > 0:  # else unknown
        cycle_s = max(cycle_s, times * computed_s)
    return times * facts.samples / cycle_s
