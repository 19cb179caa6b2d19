"""The few figures of a run that answer the question."""

from __future__ import annotations

from pipeprof.model import STORAGE_PARTS, Profile
from pipeprof.report.document.blocks import Figure
from pipeprof.report.document.wording import count_range, is_emulated, share_range
from pipeprof.units import format_count, format_rate, format_share

_NOTHING = "no batch was measured after warm-up"


def starved(profile: Profile) -> Figure:
    diagnosis = profile.diagnosis
    if not diagnosis.has_step:
        return Figure("starved", "no step", "the loader is measured alone")
    if not profile.measured_batches:
        return Figure("starved", "unknown", _NOTHING)
    accelerator = ", emulated accelerator" if is_emulated(profile.environment.accelerator) else ""
    used = f"utilisation {format_share(diagnosis.accelerator_utilisation)}"
    return Figure(
        "starved",
        format_share(diagnosis.starved_fraction),
        f"95 %: {share_range(diagnosis.starved_interval)}; {used}{accelerator}",
        "bad" if diagnosis.verdict == "starved" else "",
    )


def rate(profile: Profile) -> Figure:
    rates = profile.throughput
    if not profile.measured_batches:
        return Figure("throughput", "unknown", _NOTHING)
    read = f"; {format_rate(rates.bytes_per_s)} read" if rates.bytes_per_s else ""
    value = f"{format_count(rates.samples_per_s)} samples/s"
    return Figure("throughput", value, f"95 %: {count_range(rates.interval)}{read}")


def blamed(profile: Profile) -> Figure:
    diagnosis = profile.diagnosis
    cause = diagnosis.bottleneck
    if not profile.measured_batches:
        return Figure("to blame", "unknown", _NOTHING)
    if diagnosis.verdict == "fed":
        return Figure("to blame", "nothing", "the accelerator is fed")
    if cause is None:
        return Figure("to blame", "unknown", "too little was seen to say")
    charged = profile.blame.get(stage_of(cause))
    if charged is None or profile.stall_s <= 0:
        return Figure("to blame", cause)
    return Figure("to blame", cause, f"{format_share(charged / profile.stall_s)} of the stall")


def cache(profile: Profile) -> Figure:
    return Figure("cache", profile.cache.state, profile.cache.evidence)


def stage_of(cause: str) -> str:
    """The stage in which ``cause`` shows: storage's parts all show in `read`."""
    return "read" if cause in STORAGE_PARTS else cause
