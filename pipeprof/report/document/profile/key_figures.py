"""Present the key figures of a run: starved share, throughput, bottleneck and cache."""

from __future__ import annotations

from pipeprof.model import STORAGE_PARTS, Profile
from pipeprof.report.document.blocks import LabelledFigure
from pipeprof.report.document.wording import count_range, is_emulated, share_range
from pipeprof.units import format_count, format_rate, format_share

_NO_BATCH = "no batch was measured after warm-up"
_UNJUDGED = {
    "taken-ahead": "a thread takes the batches ahead",
    "iterator-per-batch": "a new iterator for each batch",
}


def starved(profile: Profile) -> LabelledFigure:
    """Return the starved share with its interval and the accelerator's utilisation."""
    diagnosis = profile.diagnosis
    if not diagnosis.has_step:
        return LabelledFigure("starved", "no step", "the loader is measured alone")
    if not profile.measured_batches:
        return LabelledFigure("starved", "unknown", _NO_BATCH)
    if diagnosis.unjudged:
        return LabelledFigure("starved", "unknown", _UNJUDGED[diagnosis.unjudged])
    accelerator = ", emulated accelerator" if is_emulated(profile.environment.accelerator) else ""
    used = f"utilisation {format_share(diagnosis.accelerator_utilisation)}"
    return LabelledFigure(
        "starved",
        format_share(diagnosis.starved_fraction),
        f"95 %: {share_range(diagnosis.starved_interval)}; {used}{accelerator}",
        "bad" if diagnosis.verdict == "starved" else "",
    )


def rate(profile: Profile) -> LabelledFigure:
    """Return the throughput with its interval, and the bytes read per second."""
    rates = profile.throughput
    if not profile.measured_batches:
        return LabelledFigure("throughput", "unknown", _NO_BATCH)
    read = f"; {format_rate(rates.bytes_per_s)} read" if rates.bytes_per_s else ""
    value = f"{format_count(rates.samples_per_s)} samples/s"
    return LabelledFigure("throughput", value, f"95 %: {count_range(rates.interval)}{read}")


def bottleneck(profile: Profile) -> LabelledFigure:
    """Return the cause with the most blame and its share of the stall."""
    label, cause = "bottleneck", profile.diagnosis.bottleneck
    if not profile.measured_batches:
        return LabelledFigure(label, "unknown", _NO_BATCH)
    if profile.diagnosis.verdict == "fed":
        return LabelledFigure(label, "none", "the accelerator is fed")
    if cause is None:
        return LabelledFigure(label, "unknown", "too little was measured")
    charged_s = profile.blame.get(stage_of(cause))
    if charged_s is None or profile.stall_s <= 0:
        return LabelledFigure(label, cause)
    return LabelledFigure(label, cause, f"{format_share(charged_s / profile.stall_s)} of the stall")


def cache(profile: Profile) -> LabelledFigure:
    """Return the state of the page cache before the first read, with its evidence."""
    return LabelledFigure("cache", profile.cache.state, profile.cache.evidence)


def stage_of(cause: str) -> str:
    """Return the stage that ``cause`` slows down: `read` for each part of storage."""
    return "read" if cause in STORAGE_PARTS else cause
