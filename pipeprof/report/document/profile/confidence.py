"""Present what the figures of a run rest on: sample size, overhead, cache and machine."""

from __future__ import annotations

from pipeprof.model import Profile
from pipeprof.report.document.blocks import Section, figures, section
from pipeprof.report.document.wording import emulated, is_emulated, machine, rule, skipped
from pipeprof.units import counted, format_duration, format_share

_LEAST_SHARE = 0.01
"""Share of the time below which steal and waits for a core are not reported; any machine has
some."""


def confidence(profile: Profile) -> Section:
    """Return all evidence for the figures."""
    diagnosis = profile.diagnosis
    warmup = f"{counted(profile.warmup_batches, 'warm-up batch')} left out"
    used = f"{format_share(diagnosis.accelerator_utilisation)}{emulated(profile.environment)}"
    rows = [
        ("measured", f"{_measured(profile)}, {warmup}"),
        ("start-up", _start_up(profile)),
        ("verdict", rule(diagnosis.threshold)),
        ("utilisation", f"{used} from the end of warm-up to the end of the last step (AU)"),
        ("cache", f"{profile.cache.state}: {profile.cache.evidence}"),
        ("accelerator", profile.environment.accelerator or "unknown"),
        ("profiler overhead", _overhead(profile)),
        ("core wait", _core_wait(profile)),
        ("steal time", _steal_time(profile)),
        ("machine", machine(profile.environment)),
        ("run", f"{profile.name}, {profile.created}"),
        *(("note", note) for note in profile.notes),
    ]
    return section("confidence", "Confidence", figures(rows), evidence=True)


def confidence_in_brief(profile: Profile) -> str:
    """Return the evidence for the figures as one sentence."""
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
    """Return the time to the first batch, and the total time of starting and closing epochs."""
    if profile.first_batch_s is None:
        return ""
    text = f"first batch after {format_duration(profile.first_batch_s)}"
    epochs = profile.epochs
    if len(epochs) > 1:
        boundaries_s = ((e.first_batch_s or 0.0) + (e.closing_s or 0.0) for e in epochs)
        text += (
            f"; starting and ending {counted(len(epochs), 'epoch')} took "
            f"{format_duration(sum(boundaries_s))} of "
            f"{format_duration(sum(epoch.wall_s for epoch in epochs))}"
        )
    return f"{text}; left out of all other figures"


def _overhead(profile: Profile) -> str:
    overhead = profile.overhead
    if overhead.share is None:
        return f"unknown ({overhead.method})"
    each = f", {format_duration(overhead.per_batch_s)} a batch" if overhead.per_batch_s else ""
    return f"{format_share(overhead.share)} of the run{each} ({overhead.method})"


def _core_wait(profile: Profile) -> str:
    """Return how long the training loop waited for a core; empty where it is unknown or short."""
    share = profile.core_wait_share
    if share is None or share <= _LEAST_SHARE:
        return ""
    return f"the training loop could run, but had no core, in {format_share(share)} of the run"


def _steal_time(profile: Profile) -> str:
    """Return the machine's steal time; empty where it is unknown or negligible."""
    share = profile.stolen_share
    if share is None or share <= _LEAST_SHARE:
        return ""
    return f"other machines on the same host took {format_share(share)} of the core time"
