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
    SLOWEST_LINK,
)
from pipeprof.model import Cost, Recommendation, RequestStats
from pipeprof.units import counted, format_bytes, format_count, format_duration, format_rate

_NEARLY = 0.05
"""Below what the accelerator takes counts as feeding it."""
_MOSTLY = 0.5
"""Of making a batch is waiting: storage may be what is waited for."""
_REPEATED = 0.15
"""Relatively; where handing over does not explain what the run gave, there is another cause."""
_LARGEST = 64
"""Times the batch as it is: a training step is another one then."""


def everything(facts: Facts) -> Iterator[Recommendation]:
    """All that is short of what the accelerator takes; a loop without one takes whatever comes."""
    if not facts.diagnosis.has_step:
        return
    for what in (cores, storage, batch_size):
        yield from what(facts)


def feeds(facts: Facts, cures: Sequence[Recommendation]) -> bool:
    """Whether one of ``cures`` is predicted to."""
    return any(
        (each.predicted_samples_per_s or 0.0) >= (1 - _NEARLY) * _rate(facts) for each in cures
    )


def cores(facts: Facts) -> Iterator[Recommendation]:
    """R × CPU time of a sample, and what the training process computes."""
    has, wanted = facts.environment.cores / facts.environment.ranks, _cores_wanted(facts)
    if not LEAST_GAIN * has < wanted <= min(MOST_GAIN * has, max(MOST_CORES, has)):
        return
    half = (
        NORMAL_90 * hypot(DRIFT_OF_COMPUTING, _relative_error(facts)) * (wanted - facts.main_cores)
    )
    main = facts.main_cores
    beside = f", and {main:.1f} of the training process" if main >= 0.05 else ""
    best = facts.samples * facts.cores_left / facts.cpu_s
    yield Recommendation(
        setting="cores",
        current=f"{has:.3g}",
        proposed=f"{wanted:.1f} (90 %: {wanted - half:.1f}–{wanted + half:.1f})",
        why=f"{_taken(facts)} × {format_duration(facts.cpu_s / facts.samples)} of CPU time each"
        f"{beside}. {counted(has, 'core')} come to at most {format_count(best)} samples/s with any "
        f"number of workers. As good: {wanted - has:.1f} cores of other machines that make batches "
        "beside this one, or batches that cost "
        f"{facts.cores_left / (wanted - main):.2f}× the CPU time",
    )


def storage(facts: Facts) -> Iterator[Recommendation]:
    """R × bytes of a sample; by Little's law, R × requests of a sample × what one takes."""
    if not facts.rate < _rate(facts) <= MOST_GAIN * facts.rate:
        return
    requests, part = facts.requests, facts.diagnosis.bottleneck
    if requests is not None and part == LATENCY:
        yield _at_once(facts, requests)
        return
    # of reads that nobody clocked, what read calls brought
    size, sums = read_bytes(facts) / facts.samples, facts.summary.sums
    if requests is not None and sums["bytes"]:
        size = sums["bytes"] / sums["samples"]
    waits = facts.blamed_on_workers >= _MOSTLY and facts.share(BLOCKED) >= _MOSTLY
    sure = part == BANDWIDTH or facts.limited is not None
    if size > 0 and (sure or (waits and size * facts.rate > SLOWEST_LINK)):
        yield _bandwidth(facts, size, sure)


def batch_size(facts: Facts) -> Iterator[Recommendation]:
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
    size, ours = round(facts.samples), facts.recording.source
    yield Recommendation(
        setting="batch_size",
        current=str(size),
        proposed=str(times * size),
        why=f"a step takes {format_duration(facts.step_s)}, and to hand a batch over "
        f"{format_duration(handed_s)}, whatever its size: one is due {times} times less often. It "
        "is another training then (learning rate, statistics over a batch). Estimated from this "
        "run alone, for steps that take as many times as long; not tried",
        predicted_samples_per_s=predicted,
        interval=(low, high),
        predicted_starved=1 - predicted / demand,
        predicted_starved_interval=(max(0.0, 1 - high / demand), 1 - low / demand),
        cost=Cost(None, under_way, under_way) if isfinite(under_way) else None,
        code=f"{'DataLoader' if ours is None else 'open_dataset'}(…, batch_size={times * size})",
    )


def _rate(facts: Facts) -> float:
    """What the accelerator takes: samples/s."""
    if not facts.step_s > 0:
        return float("inf")
    return (1 - facts.diagnosis.threshold) * facts.samples / facts.step_s


def _taken(facts: Facts) -> str:
    return f"the accelerator takes {format_count(_rate(facts))} samples/s"


def _cores_wanted(facts: Facts) -> float:
    return _rate(facts) * facts.cpu_s / facts.samples + facts.main_cores


def _relative_error(facts: Facts) -> float:
    """Of the mean CPU time of a batch: one standard error."""
    seen = facts.summary.resources[CPU]
    low, high = seen.quantiles(0.16, 0.84)
    return (high - low) / 2 / seen.mean / sqrt(seen.count) if seen.count and seen.mean else 0.0


def _bandwidth(facts: Facts, size: float, sure: bool) -> Recommendation:
    """``size``: bytes of storage for a sample."""
    rate, times = _rate(facts), _rate(facts) / facts.rate
    source = facts.recording.source
    whole = ""
    if source is not None:
        copied = format_duration(source.bytes / (facts.rate * size))
        whole = f": at the present rate all {format_bytes(source.bytes)} are there after {copied}"
    return Recommendation(
        setting="storage bandwidth",
        current=format_rate(facts.rate * size),
        proposed=f"{format_rate(rate * size)} ({times:.1f}×)",
        why=f"{_taken(facts)} × {format_bytes(size)} of storage each. As good: {1 / times:.2f}× "
        "the bytes for a sample (a denser format, only the columns in use), or the data on a local "
        f"disk of that bandwidth{whole}"
        + ("" if sure else ". If the storage gives no more: a run with more workers tells"),
    )  # fmt: skip


def _at_once(facts: Facts, requests: RequestStats) -> Recommendation:
    """Requests under way on average, now and then."""
    each_s = requests.latency_s.mean
    per_sample = facts.summary.sums["requests"] / facts.summary.sums["samples"]
    wanted = _rate(facts) * per_sample * each_s
    return Recommendation(
        setting="requests under way",
        current=f"{requests.in_flight:.1f}",
        proposed=f"{wanted:.1f}",
        why=f"{_taken(facts)} × {counted(per_sample, 'request')} each × {format_duration(each_s)} "
        "(Little's law). By workers, by asking for several at a time in each; or by requests that "
        "bring more samples, or a storage that answers sooner (a local disk)",
    )


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
