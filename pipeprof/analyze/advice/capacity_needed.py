"""What would feed the accelerator where no number of workers does: more of what is short, and by
how much.

All are rooflines of one run. What the accelerator takes, R samples/s, is a batch per training step
for all but the tolerated starved fraction θ of the time: R = (1 − θ) × samples / step.
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

_NEARLY = 0.05
"""Below what the accelerator takes counts as feeding it."""
_REPEATED = 0.15
"""Relatively; where handing over does not explain what the run gave, there is another cause."""
_LARGEST = 64
"""Times the batch as it is: a training step is another one then."""


def everything(facts: Facts) -> Iterator[Proposal]:
    """All that is short of what the accelerator takes; a loop without one takes whatever comes."""
    if not facts.diagnosis.has_step:
        return
    for what in (cores, storage, batch_size):
        yield from what(facts)


def feeds(facts: Facts, cures: Sequence[Proposal]) -> bool:
    """Whether one of ``cures`` is predicted to."""
    enough = (1 - _NEARLY) * _demand(facts)
    return any((each.outcome.predicted_samples_per_s or 0.0) >= enough for each in cures)


def cores(facts: Facts) -> Iterator[Proposal]:
    """R × CPU time of a sample, and what the training process computes."""
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
    """R × bytes of a sample; by Little's law, R × requests of a sample × what one takes."""
    if not facts.rate < _demand(facts) <= MOST_GAIN * facts.rate:
        return
    requests, part = facts.requests, facts.diagnosis.bottleneck
    if requests is not None and part == LATENCY:
        a_sample = facts.summary.sums["requests"] / facts.summary.sums["samples"]
        figures: Figures = {
            "demand": _demand(facts),
            "a_sample": a_sample,
            "wanted": _demand(facts) * a_sample * requests.latency_s.mean,
        }
        yield Proposal("more-requests", "requests under way", figures)
        return
    # of reads that nobody clocked, what read calls brought
    size, sums = read_bytes(facts) / facts.samples, facts.summary.sums
    if requests is not None and sums["bytes"]:
        size = sums["bytes"] / sums["samples"]
    waits = facts.blamed_on_workers >= MOSTLY and facts.share(BLOCKED) >= MOSTLY
    sure = part == BANDWIDTH or facts.limited is not None
    if size > 0 and (sure or (waits and size * facts.rate > SLOWEST_LINK)):
        times, source = _demand(facts) / facts.rate, facts.recording.source
        figures = {
            "demand": _demand(facts),
            "now": facts.rate * size,
            "wanted": _demand(facts) * size,
            "times": times,
            "size": size,
            "fewer": 1 / times,
            "copied_s": source.bytes / (facts.rate * size) if source else None,
            "sure": sure,
        }
        yield Proposal("more-bandwidth", "storage bandwidth", figures)


def batch_size(facts: Facts) -> Iterator[Proposal]:
    """To hand a batch over takes h, whatever its size; a step on k times the samples takes k times
    as long: k = h (1 − θ) / (θ step)."""
    handed_s = facts.picking_s
    handed_s += 0.0 if facts.config.pin_memory else roofline_estimate.receiving_s(facts)
    times = _times_as_large(facts, handed_s)
    if not 1 < times <= _LARGEST or not 1 <= facts.tensors < MANY_TENSORS:
        return
    now = _of_larger_batches(facts, 1, handed_s)
    low, predicted, high = (
        _of_larger_batches(facts, times, handed_s * share)
        for share in (1 + DRIFT_OF_HAND_OVER, 1.0, 1 - DRIFT_OF_HAND_OVER)
    )
    if predicted < LEAST_GAIN * now or abs(now / facts.rate - 1) > _REPEATED:
        return
    low, high = low * (1 - DRIFT_OF_COMPUTING), high * (1 + DRIFT_OF_COMPUTING)
    demand = facts.samples / facts.step_s
    under_way = (times - 1) * facts.workers * facts.prefetch * facts.batch_bytes
    outcome = PredictedEffect(
        predicted_samples_per_s=predicted,
        interval=(low, high),
        predicted_starved=1 - predicted / demand,
        predicted_starved_interval=(max(0.0, 1 - high / demand), 1 - low / demand),
        cost=Cost(None, under_way, under_way) if isfinite(under_way) else None,
    )
    size = round(facts.samples)
    figures = {
        "now": size,
        "wanted": times * size,
        "times": times,
        "handed_s": handed_s,
        "ours": facts.recording.source is not None,
    }
    yield Proposal("batch-size", "batch_size", figures, outcome)


def _demand(facts: Facts) -> float:
    """What the accelerator takes: samples/s."""
    if not facts.step_s > 0:
        return float("inf")
    return (1 - facts.diagnosis.threshold) * facts.samples / facts.step_s


def _relative_error(facts: Facts) -> float:
    """Of the mean CPU time of a batch: one standard error."""
    seen = facts.summary.resources[CPU]
    low, high = seen.quantiles(0.16, 0.84)
    return (high - low) / 2 / seen.mean / sqrt(seen.count) if seen.count and seen.mean else 0.0


def _times_as_large(facts: Facts, handed_s: float) -> int:
    """0: without workers nothing is handed over, or it is not known how long that takes."""
    allowed = facts.diagnosis.threshold
    if not facts.workers or not allowed * facts.step_s > 0 or not handed_s > 0:
        return 0
    times = handed_s * (1 - allowed) / (allowed * facts.step_s)
    return ceil(min(times, 1.0 + _LARGEST) - 1e-9)


def _of_larger_batches(facts: Facts, times: float, handed_s: float) -> float:
    """Samples/s, with ``handed_s`` for each batch; no more than workers and cores make of them."""
    made_s, computed_s = facts.work_s / facts.workers, facts.cpu_s / facts.cores_left
    turn_s = max(handed_s + times * facts.step_s, times * made_s)
    if computed_s > 0:  # else unknown
        turn_s = max(turn_s, times * computed_s)
    return times * facts.samples / turn_s
