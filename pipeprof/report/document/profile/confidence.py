"""What the figures of a run rest on."""

from __future__ import annotations

from pipeprof.model import Profile
from pipeprof.report.document.blocks import Section, figures, section
from pipeprof.report.document.wording import emulated, is_emulated, machine, rule, skipped
from pipeprof.units import counted, format_duration, format_share

_STOLEN = 0.01
"""Of the core time: less is stolen on any shared host."""


def confidence(profile: Profile) -> Section:
    diagnosis = profile.diagnosis
    warmup = f"{counted(profile.warmup_batches, 'batch')} left out as warm-up"
    used = f"{format_share(diagnosis.accelerator_utilisation)}{emulated(profile.environment)}"
    rows = [
        ("measured", f"{_measured(profile)}, {warmup}"),
        ("start-up", _start_up(profile)),
        ("verdict", rule(diagnosis.threshold)),
        ("utilisation", f"{used} after warm-up, until the last step's end (AU)"),
        ("cache", f"{profile.cache.state}: {profile.cache.evidence}"),
        ("accelerator", profile.environment.accelerator or "unknown"),
        ("profiler overhead", _overhead(profile)),
        ("stolen", _stolen(profile)),
        ("machine", machine(profile.environment)),
        ("run", f"{profile.name}, {profile.created}"),
        *(("note", note) for note in profile.notes),
    ]
    return section("confidence", "Confidence", figures(rows), evidence=True)


def confidence_in_brief(profile: Profile) -> str:
    share = profile.overhead.share
    overhead = "unknown" if share is None else format_share(share)
    accelerator = profile.environment.accelerator or "unknown"
    parts = [
        _measured(profile),
        "emulated accelerator" if is_emulated(accelerator) else f"accelerator {accelerator}",
        f"cache {profile.cache.state}",
        f"profiler overhead {overhead}",
    ]
    left_out = skipped(profile.source) if profile.source is not None else ""
    if left_out:
        parts.append(f"{left_out} left out")
    if profile.notes:
        parts.append(counted(len(profile.notes), "note"))
    return f"{'; '.join(parts)}."


def _measured(profile: Profile) -> str:
    return f"{counted(profile.measured_batches, 'batch')} in {format_duration(profile.wall_s)}"


def _start_up(profile: Profile) -> str:
    """Time to the first batch, and what starting and closing epochs took in all."""
    if profile.first_batch_s is None:
        return ""
    text = f"first batch after {format_duration(profile.first_batch_s)}"
    epochs = profile.epochs
    if len(epochs) > 1:
        boundaries_s = ((e.first_batch_s or 0.0) + (e.closing_s or 0.0) for e in epochs)
        text += (
            f"; {counted(len(epochs), 'epoch')} began and ended in "
            f"{format_duration(sum(boundaries_s))} of "
            f"{format_duration(sum(epoch.wall_s for epoch in epochs))}"
        )
    return f"{text}, left out too"


def _overhead(profile: Profile) -> str:
    found = profile.overhead
    if found.share is None:
        return f"unknown ({found.method})"
    each = f", {format_duration(found.per_batch_s)} a batch" if found.per_batch_s else ""
    return f"{format_share(found.share)} of the run{each} ({found.method})"


def _stolen(profile: Profile) -> str:
    """Empty where it is unknown, or next to nothing."""
    share = profile.stolen_share
    if share is None or share <= _STOLEN:
        return ""
    return f"{format_share(share)} of the machine's core time went to others on its host (steal)"
