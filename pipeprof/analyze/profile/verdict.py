"""The verdict: is the accelerator starved, how sure is that, and by what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pipeprof.analyze.profile import no_step
from pipeprof.analyze.profile.histogram import Series
from pipeprof.analyze.profile.intervals import ratio_interval
from pipeprof.analyze.profile.run_summary import Summary
from pipeprof.analyze.profile.stage_times import BLOCKED, CPU, NATIVE, RUN_QUEUE
from pipeprof.analyze.profile.stall_attribution import DISPATCH, START_UP, UNKNOWN, WORKER_CPU
from pipeprof.analyze.profile.storage_bottleneck import BANDWIDTH, CLIENT, LATENCY, StorageBound
from pipeprof.analyze.profile.worker_activity import STAGES
from pipeprof.analyze.thresholds import LEAST_BATCHES_FOR_VERDICT, MANY_TENSORS
from pipeprof.model import (
    BY_LENGTH,
    AsSteps,
    Diagnosis,
    PauseKind,
    Pauses,
    PauseStats,
    Stage,
    Verdict,
)
from pipeprof.units import counted, format_share, percent

_NAMED = {
    WORKER_CPU: "for a core (worker-cpu)",
    DISPATCH: "for a worker to be given the batch (dispatch)",
    START_UP: "for workers to start (start-up)",
}
_HELD_UP_BY = {
    BANDWIDTH: "the storage's bandwidth",
    LATENCY: "the storage's latency",
    CLIENT: "the storage's client",
}


def diagnose(
    summary: Summary, charges: Mapping[str, float], threshold: float, storage: StorageBound
) -> Diagnosis:
    """``charges``: the blame; ``storage``: what is to blame if reading is. The starved fraction is
    stall / (stall + the rest of the turn)."""
    count, wall_s = summary.measured, summary.sums["wall_s"]
    fraction = summary.sums["stall_s"] / wall_s if wall_s else 0.0
    interval = _interval(summary.series) if wall_s else (0.0, 1.0)
    trains = no_step.has_step(summary)
    verdict = _verdict(interval, threshold, count) if trains else "inconclusive"
    culprit = next(iter(charges), None)
    bottleneck = "accelerator" if verdict == "fed" else culprit if culprit != UNKNOWN else None
    reads = bottleneck == str(Stage.READ)
    return Diagnosis(
        verdict=verdict,
        starved_fraction=fraction,
        starved_interval=interval,
        threshold=threshold,
        bottleneck=storage.part or bottleneck if reads else bottleneck,
        headline=_headline(verdict, fraction, interval, charges, threshold, summary, storage)
        if trains
        else _without_step(summary, charges, storage),
        evidence=storage.evidence if reads else "",
        accelerator_utilisation=1 - fraction if wall_s else 0.0,
        more_batches=_more(count, fraction, interval, threshold)
        if verdict == "inconclusive" and trains
        else None,
        has_step=trains,
    )


def pauses(summary: Summary, kinds: Sequence[PauseKind], threshold: float) -> Pauses | None:
    """``kinds``: what their numbers stand for, but for those that only length tells."""
    if not summary.pauses:
        return None
    named = {BY_LENGTH: PauseKind("", "length"), **dict(enumerate(kinds))}
    found = [
        PauseStats(
            named.get(number, PauseKind("unknown", "named")),
            sketch.count, sketch.total, sketch.quantiles(1.0)[0],
        )
        for number, sketch in summary.pauses.items()
    ]  # fmt: skip
    total_s = sum(kind.total_s for kind in found)
    stall_s, wall_s = (float(summary.as_steps[name].sum()) for name in ("stall_s", "cycle_s"))
    interval = _interval(summary.as_steps)
    return Pauses(
        count=sum(kind.count for kind in found),
        total_s=total_s,
        longest_s=max(kind.longest_s for kind in found),
        share=summary.sums["pause_s"] / wall_s if wall_s else 0.0,
        rested_batches=summary.rested,
        kinds=tuple(sorted(found, key=lambda kind: -kind.total_s)),
        as_steps=AsSteps(
            _verdict(interval, threshold, summary.warmed_up),
            stall_s / wall_s if wall_s else 0.0,
            interval,
        ),
    )


def _interval(series: Series) -> tuple[float, float]:
    if len(series["stall_s"]) < 2:
        return (0.0, 1.0)
    low, high = ratio_interval(series["stall_s"], series["cycle_s"])
    return max(0.0, low), min(1.0, high)


def _verdict(interval: tuple[float, float], threshold: float, count: int) -> Verdict:
    if count < LEAST_BATCHES_FOR_VERDICT:
        return "inconclusive"
    if interval[0] >= threshold:
        return "starved"
    return "fed" if interval[1] < threshold else "inconclusive"


def _headline(
    verdict: Verdict,
    fraction: float,
    interval: tuple[float, float],
    charges: Mapping[str, float],
    threshold: float,
    summary: Summary,
    storage: StorageBound,
) -> str:
    count = summary.measured
    if not count:
        return "Inconclusive: no batch was measured after warm-up; run longer."
    share = (
        f"{format_share(fraction)} of the time "
        f"(95 %: {interval[0] * 100:.1f}–{interval[1] * 100:.1f} %)"
    )
    if verdict == "fed":
        return f"Fed: the accelerator waited for batches {share}; loading is not the limit."
    culprit, seconds = next(iter(charges.items()), (UNKNOWN, 0.0))
    if verdict == "starved":
        blamed = percent(seconds / sum(charges.values()))
        cause = f"; {blamed} of that wait was {_NAMED.get(culprit, culprit)}"
        why = _why(summary, culprit)
        if culprit == str(Stage.READ) and storage.part is not None:
            why = f", held up by {_HELD_UP_BY[storage.part]}"
        return f"Starved: the accelerator waited for batches {share}{cause}{why}."
    return (
        f"Inconclusive: the accelerator waited for batches {share}, measured over {count} "
        f"batches; that does not say on which side of {format_share(threshold)} it is."
    )


def _without_step(summary: Summary, charges: Mapping[str, float], storage: StorageBound) -> str:
    cause = next(iter(charges), UNKNOWN)
    why = _why(summary, cause)
    if cause == str(Stage.READ) and storage.part is not None:
        why = f", held up by {_HELD_UP_BY[storage.part]}"
    return no_step.headline(summary, charges, cause, why)


def _why(summary: Summary, culprit: str) -> str:
    """What lies behind ``culprit``, in brackets; empty when it is not known."""
    tensors = summary.gauges["tensors"].mean
    if culprit == str(Stage.TRANSFER) and tensors >= MANY_TENSORS:
        return f" (of {counted(tensors, 'tensor')} a batch)"
    if culprit == WORKER_CPU:
        waiting = summary.share_of_fetch(RUN_QUEUE)
        return f" (making a batch is {percent(waiting)} waiting for a core)"
    if culprit == summary.limited:
        return ", at a rate that all readers share: time saved elsewhere is lost in waiting for it"
    held = summary.held[culprit] / summary.blame[culprit] if summary.held[culprit] else 0.0
    if held >= 0.5:
        return ", by a worker whose interpreter a finished batch waited for to be handed over"
    native = summary.share_of_fetch(NATIVE) >= summary.share_of_fetch(BLOCKED) / 2
    blocked = "waiting for native threads" if native else "blocked"
    for resource, doing in ((BLOCKED, blocked), (CPU, "computing")):
        if culprit in STAGES and summary.share_of_fetch(resource) >= 0.5:
            return f" (making a batch is {percent(summary.share_of_fetch(resource))} {doing})"
    return ""


def _more(count: int, fraction: float, interval: tuple[float, float], threshold: float) -> int:
    """An interval narrows with the square root of the number of batches."""
    distance = max(abs(fraction - threshold), 0.002)
    half = (interval[1] - interval[0]) / 2
    wanted = max(count * (half / distance) ** 2, LEAST_BATCHES_FOR_VERDICT)
    return max(LEAST_BATCHES_FOR_VERDICT, round(wanted - count))
