"""The few figures of a run that answer the question."""

from __future__ import annotations

from pipeprof.model import STORAGE_PARTS, Profile
from pipeprof.report.document.blocks import LabelledFigure
from pipeprof.report.document.wording import count_range, is_emulated, share_range
from pipeprof.units import format_count, format_rate, format_share

_NOTHING = "no batch was measured after warm-up"


def starved(profile: Profile) -> LabelledFigure:
    diagnosis = profile.diagnosis
    if not diagnosis.has_step:
        return LabelledFigure("starved", "no step", "the loader is measured alone")
    if not profile.measured_batches:
        return LabelledFigure("starved", "unknown", _NOTHING)
    accelerator = ", emulated accelerator" if is_emulated(profile.environment.accelerator) else ""
    used = f"utilisation {format_share(diagnosis.accelerator_utilisation)}"
    return LabelledFigure(
        "starved",
        format_share(diagnosis.starved_fraction),
        f"95 %: {share_range(diagnosis.starved_interval)}; {used}{accelerator}",
        "bad" if diagnosis.verdict == "starved" else "",
    )


def rate(profile: Profile) -> LabelledFigure:
    rates = profile.throughput
    if not profile.measured_batches:
        return LabelledFigure("throughput", "unknown", _NOTHING)
    read = f"; {format_rate(rates.bytes_per_s)} read" if rates.bytes_per_s else ""
    value = f"{format_count(rates.samples_per_s)} samples/s"
    return LabelledFigure("throughput", value, f"95 %: {count_range(rates.interval)}{read}")


def blamed(profile: Profile) -> LabelledFigure:
    diagnosis = profile.diagnosis
    cause = diagnosis.bottleneck
    if not profile.measured_batches:
        return LabelledFigure("to blame", "unknown", _NOTHING)
    if diagnosis.verdict == "fed":
        return LabelledFigure("to blame", "nothing", "the accelerator is fed")
    if cause is None:
        return LabelledFigure("to blame", "unknown", "too little was seen to say")
    charged = profile.blame.get(stage_of(cause))
    if charged is None or profile.stall_s <= 0:
        return LabelledFigure("to blame", cause)
    return LabelledFigure(
        "to blame", cause, f"{format_share(charged / profile.stall_s)} of the stall"
    )


def cache(profile: Profile) -> LabelledFigure:
    return LabelledFigure("cache", profile.cache.state, profile.cache.evidence)


def stage_of(cause: str) -> str:
    """The stage in which ``cause`` shows: storage's parts all show in `read`."""
    return "read" if cause in STORAGE_PARTS else cause
