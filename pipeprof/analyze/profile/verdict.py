"""Give the verdict: whether the accelerator is starved, with what certainty, and by what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import nan

from pipeprof.analyze.profile.histogram import Series
from pipeprof.analyze.profile.intervals import ratio_interval
from pipeprof.analyze.profile.no_step import has_step
from pipeprof.analyze.profile.run_summary import Summary
from pipeprof.analyze.profile.stage_times import BLOCKED, CPU, NATIVE, RUN_QUEUE
from pipeprof.analyze.profile.stall_attribution import PIPELINE, UNKNOWN, WORKER_CPU
from pipeprof.analyze.profile.storage_bottleneck import StorageBound
from pipeprof.analyze.profile.worker_activity import STAGES
from pipeprof.analyze.thresholds import LEAST_BATCHES_FOR_VERDICT, MANY_TENSORS, MOSTLY
from pipeprof.model import (
    BY_LENGTH,
    AsSteps,
    Diagnosis,
    PauseKind,
    Pauses,
    PauseStats,
    Stage,
    Unjudged,
    Verdict,
)


def diagnose(
    summary: Summary,
    charges: Mapping[str, float],
    threshold: float,
    storage: StorageBound,
    unjudged: Unjudged = "",
) -> Diagnosis:
    """Return the diagnosis, without the sentences that `analyze.wording` adds.

    Its headline is empty, and its evidence is a code. The starved fraction is the stall over the
    time of the training loop.

    Args:
        summary: Figures of the run.
        charges: Seconds of stall by cause, largest first.
        threshold: Starved fraction, 0..1, from which the accelerator counts as starved.
        storage: The part of the storage that is to blame if reading is.
        unjudged: Why there is no verdict, as of `profile.unjudged`.
    """
    count, wall_s = summary.measured, summary.sums["wall_s"]
    fraction = summary.sums["stall_s"] / wall_s if wall_s else 0.0
    interval = _interval(summary.series) if wall_s else (0.0, 1.0)
    trains = bool(unjudged) or has_step(summary)
    decides = trains and not unjudged
    verdict = _verdict(interval, threshold, count) if decides else "inconclusive"
    cause = next(iter(charges), None)
    if unjudged:
        cause = None
    bottleneck = "accelerator" if verdict == "fed" else cause if cause != UNKNOWN else None
    reads = bottleneck == str(Stage.READ)
    return Diagnosis(
        verdict=verdict,
        starved_fraction=fraction,
        starved_interval=interval,
        threshold=threshold,
        bottleneck=storage.part or bottleneck if reads else bottleneck,
        headline="",
        evidence=storage.evidence if reads else "",
        accelerator_utilisation=1 - fraction if wall_s else 0.0,
        more_batches=_more_batches(count, fraction, interval, threshold)
        if verdict == "inconclusive" and decides
        else None,
        has_step=trains,
        unjudged=unjudged,
    )


def pauses(summary: Summary, kinds: Sequence[PauseKind], threshold: float) -> Pauses | None:
    """Return the figures of the pauses; ``None`` where there were none. ``kinds`` are the kinds by
    number, without that of pauses found by their length."""
    if not summary.pauses:
        return None
    by_number = {BY_LENGTH: PauseKind("", "length"), **dict(enumerate(kinds))}
    stats = [
        PauseStats(
            by_number.get(number, PauseKind("unknown", "named")),
            sketch.count, sketch.total, sketch.quantiles(1.0)[0],
        )
        for number, sketch in summary.pauses.items()
    ]  # fmt: skip
    stall_s, wall_s = (float(summary.as_steps[name].sum()) for name in ("stall_s", "cycle_s"))
    interval = _interval(summary.as_steps)
    return Pauses(
        count=sum(kind.count for kind in stats),
        total_s=sum(kind.total_s for kind in stats),
        longest_s=max(kind.longest_s for kind in stats),
        share=summary.sums["pause_s"] / wall_s if wall_s else 0.0,
        rested_batches=summary.rested,
        kinds=tuple(sorted(stats, key=lambda kind: -kind.total_s)),
        as_steps=AsSteps(
            _verdict(interval, threshold, summary.warmed_up),
            stall_s / wall_s if wall_s else 0.0,
            interval,
        ),
    )


def _interval(series: Series) -> tuple[float, float]:
    """Return the 95 % interval of the starved fraction, within 0..1."""
    if len(series["stall_s"]) < 2:
        return (0.0, 1.0)
    low, high = ratio_interval(series["stall_s"], series["cycle_s"])
    return max(0.0, low), min(1.0, high)


def _verdict(interval: tuple[float, float], threshold: float, count: int) -> Verdict:
    """Return the verdict on ``count`` batches. It is open while the interval has the threshold."""
    if count < LEAST_BATCHES_FOR_VERDICT:
        return "inconclusive"
    if interval[0] >= threshold:
        return "starved"
    return "fed" if interval[1] < threshold else "inconclusive"


def headline_figures(
    summary: Summary, charges: Mapping[str, float], storage: StorageBound
) -> dict[str, object]:
    """Return what the headline of the verdict names: the cause, and the reason behind it."""
    cause, seconds = next(iter(charges.items()), (UNKNOWN, 0.0))
    reason, share = _reason(summary, cause)
    if cause == str(Stage.READ) and storage.part is not None:
        reason = storage.part
    wall_s, stall_s = summary.sums["wall_s"], sum(charges.values())
    return {
        "total": summary.total,
        "measured": summary.measured,
        "samples_per_s": summary.sums["samples"] / wall_s if wall_s else None,
        "cause": cause,
        "of_stall": seconds / stall_s if stall_s else None,
        "of_time": seconds / wall_s if wall_s else None,
        "reason": reason,
        "reason_share": share,
        "tensors": summary.gauges["tensors"].mean,
        "stage": summary.charges.busiest.stage.name if summary.charges.busiest else None,
    }


def _reason(summary: Summary, cause: str) -> tuple[str, float]:
    """Return a code for the reason behind ``cause``, and its share of the fetch time, 0..1. They
    are empty and NaN where they are unknown."""
    if cause == str(Stage.TRANSFER) and summary.gauges["tensors"].mean >= MANY_TENSORS:
        return "tensors", nan
    if cause == PIPELINE and summary.charges.busiest is not None:
        return f"stage-{summary.charges.busiest.known_by}", summary.charges.busiest.share
    if cause == WORKER_CPU:
        return "cores", summary.share_of_fetch(RUN_QUEUE)
    if cause == summary.charges.limited:
        return "limited", nan
    blocked_s = summary.charges.blocked_hand_over_s[cause]
    if blocked_s and blocked_s / summary.charges.blame[cause] >= MOSTLY:
        return "interpreter", nan
    blocked, computing = summary.share_of_fetch(BLOCKED), summary.share_of_fetch(CPU)
    if cause in STAGES and blocked >= MOSTLY:
        return "native" if summary.share_of_fetch(NATIVE) >= blocked / 2 else "blocked", blocked
    return ("computing", computing) if cause in STAGES and computing >= MOSTLY else ("", nan)


def _more_batches(
    count: int, fraction: float, interval: tuple[float, float], threshold: float
) -> int:
    """Return how many more batches would exclude the threshold from the interval, which narrows
    with the square root of their number."""
    distance = max(abs(fraction - threshold), 0.002)
    half = (interval[1] - interval[0]) / 2
    wanted = max(count * (half / distance) ** 2, LEAST_BATCHES_FOR_VERDICT)
    return max(LEAST_BATCHES_FOR_VERDICT, round(wanted - count))
