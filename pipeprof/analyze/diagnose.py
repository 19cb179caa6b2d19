"""The verdict: is the accelerator starved, how sure is that, and by what."""

from __future__ import annotations

from collections.abc import Mapping

from pipeprof.analyze import no_step
from pipeprof.analyze.blame import UNKNOWN
from pipeprof.analyze.facts import MAKING, MANY_TENSORS
from pipeprof.analyze.stages import BLOCKED, CPU, NATIVE, RUN_QUEUE
from pipeprof.analyze.stats import ratio_interval
from pipeprof.analyze.storage import BANDWIDTH, CLIENT, LATENCY, StorageBound
from pipeprof.analyze.summary import Summary
from pipeprof.model import Diagnosis, Stage, Verdict
from pipeprof.units import counted, format_share, percent

FEWEST_BATCHES = no_step.FEW
"""Below this no verdict is given."""


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
    interval = _interval(summary) if wall_s else (0.0, 1.0)
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


def _interval(summary: Summary) -> tuple[float, float]:
    if summary.measured < 2:
        return (0.0, 1.0)
    low, high = ratio_interval(summary.series["stall_s"], summary.series["cycle_s"])
    return max(0.0, low), min(1.0, high)


def _verdict(interval: tuple[float, float], threshold: float, count: int) -> Verdict:
    if count < FEWEST_BATCHES:
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
        cause = f"; {percent(seconds / sum(charges.values()))} of that wait was {culprit}"
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
    waiting = summary.share_of_making(RUN_QUEUE)
    transfer = culprit == str(Stage.TRANSFER)
    if transfer and tensors >= MANY_TENSORS:
        return f" (of {counted(tensors, 'tensor')} a batch)"
    if waiting >= 0.5 and (transfer or culprit in MAKING):
        return f" (making a batch is {percent(waiting)} waiting for a core)"
    native = summary.share_of_making(NATIVE) >= summary.share_of_making(BLOCKED) / 2
    blocked = "waiting for native threads" if native else "blocked"
    for resource, doing in ((BLOCKED, blocked), (CPU, "computing")):
        if culprit in MAKING and summary.share_of_making(resource) >= 0.5:
            return f" (making a batch is {percent(summary.share_of_making(resource))} {doing})"
    return ""


def _more(count: int, fraction: float, interval: tuple[float, float], threshold: float) -> int:
    """An interval narrows with the square root of the number of batches."""
    distance = max(abs(fraction - threshold), 0.002)
    half = (interval[1] - interval[0]) / 2
    wanted = max(count * (half / distance) ** 2, FEWEST_BATCHES)
    return max(FEWEST_BATCHES, round(wanted - count))
