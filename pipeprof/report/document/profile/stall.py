"""Present what the accelerator waited for, and the pauses that are no training steps."""

from __future__ import annotations

from collections.abc import Sequence

from pipeprof.model import PauseKind, Profile, Speedup
from pipeprof.report.document import blocks as doc
from pipeprof.report.document.charts import Bar, Bars
from pipeprof.report.document.wording import emulated, share_range
from pipeprof.units import counted, format_duration, format_share

_MOST_CAUSES = 4
"""Most causes on the first screen."""


def stall(profile: Profile) -> doc.Section:
    """Return all causes of the stall and their worth, as a chart and a table."""
    causes = _causes(profile)
    if not causes:
        unknown = "Unknown: nothing was measured."
        text = "It never waited." if profile.measured_batches else unknown
        return doc.section("stall", _title(profile), text)
    name, most = causes[0]
    text = (
        f"Of {format_duration(profile.stall_s)} of stall, {format_duration(most)} "
        f"({format_share(most / profile.stall_s)}) is charged to {name}."
    )
    chart = doc.Chart("blame", "Blame", text, _bars(causes, profile.stall_s))
    why = (profile.diagnosis.worth_note, *profile.diagnosis.disagreements)
    notes = (_legend(profile), _where_awaited(profile), *why)
    return doc.section(
        "stall", _title(profile), chart, _table(profile, causes), *notes, note=_share(profile)
    )


def _bars(causes: Sequence[tuple[str, float]], stall_s: float) -> Bars:
    texts = [f"{format_duration(s)}, {format_share(s / stall_s)}" for _, s in causes]
    bars = (
        Bar(name, seconds, text, f"{name}: {text} of the stall", "" if place else "worst")
        for place, ((name, seconds), text) in enumerate(zip(causes, texts, strict=True))
    )
    return Bars("s", "stall charged to it", tuple(bars))


def first_causes(profile: Profile) -> doc.Section:
    """Return only the causes with the most stall, and their worth."""
    causes = _causes(profile)
    if not causes:
        return doc.section("stall", _title(profile))
    why = profile.diagnosis.worth_note
    shown = causes[: _MOST_CAUSES - bool(why)]
    left = len(causes) - len(shown)
    more = f"{counted(left, 'more cause')}. " if left else ""
    text = f"{more}{_legend(profile)}".strip()
    table = _table(profile, shown)
    return doc.section("stall", _title(profile), table, text, why, note=_share(profile))


def _causes(profile: Profile) -> list[tuple[str, float]]:
    """Return (cause, seconds) pairs, the longest first; empty if nothing stalled."""
    if profile.stall_s <= 0:
        return []
    return sorted(profile.blame.items(), key=lambda item: -item[1])


def _title(profile: Profile) -> str:
    diagnosis = profile.diagnosis
    trains = diagnosis.has_step and not diagnosis.unjudged
    return f"What the {'accelerator' if trains else 'loop'} waited for"


def _share(profile: Profile) -> str:
    of_all = f"{format_duration(profile.stall_s)} of {format_duration(profile.wall_s)}"
    return f"{of_all}{emulated(profile.environment)}"


def _table(profile: Profile, causes: Sequence[tuple[str, float]]) -> doc.Table:
    worth = doc.columns(("25 % cheaper", "free")) if profile.worth else ()
    worst = causes[0][0] if profile.diagnosis.verdict == "starved" else None
    rows = []
    for name, seconds in causes:
        gains, share = profile.worth.get(name), seconds / profile.stall_s
        speedups = [_speedup(gains.cheaper), _speedup(gains.free)] if gains else ["unknown"] * 2
        cells = (
            doc.term(name),
            format_duration(seconds),
            doc.Cell(format_share(share), share=share),
        )
        rows.append(doc.row(*cells, *speedups[: len(worth)], tone="bad" if name == worst else ""))
    return doc.Table(
        (doc.Column("cause", "name"), *doc.columns(("stall", "share")), *worth), tuple(rows)
    )


def _speedup(speedup: Speedup) -> str:
    """Format a gain and its interval: ``"+31 % (25–36)"``."""
    low, high = (f"{100 * share:.0f}" for share in speedup.interval)
    return f"{100 * speedup.share:+.0f} % ({low}–{high})".replace("(-", "(−").replace("–-", "–−")


def _legend(profile: Profile) -> str:
    if not profile.worth:
        return ""
    return "25 % cheaper, free: estimated gain in samples/s (90 % interval)."


def _where_awaited(profile: Profile) -> str:
    """Say where the awaited batch was during the stall; empty if that is the main cause."""
    if not profile.awaited_in or next(iter(profile.awaited_in)) == next(iter(profile.blame)):
        return ""
    shares = [
        f"{name} {format_share(seconds / profile.stall_s)}"
        for name, seconds in profile.awaited_in.items()
        if seconds >= 0.05 * profile.stall_s
    ]
    return (
        f"During the stall the awaited batch was in {', '.join(shares)}: its place, not the cause."
    )


def pauses_text(profile: Profile) -> str:
    """Summarise the pauses, and the verdict if they counted as steps; empty without pauses."""
    paused = profile.pauses
    if paused is None:
        return ""
    as_steps = paused.as_steps
    return (
        f"{paused.count:,}, {format_duration(paused.total_s)} in total, "
        f"{format_share(paused.share)} of the time, left out; counted as steps: {as_steps.verdict} "
        f"({format_share(as_steps.starved_fraction)})"
    )


def pauses(profile: Profile) -> doc.Section:
    """Return the pauses by kind, and the verdict if they counted as training steps."""
    name, title = "pauses", "Pauses"
    paused = profile.pauses
    if paused is None:
        none = "No pause was found: between batches main did nothing but train."
        return doc.section(name, title, none, evidence=True)
    table = doc.Table(
        (doc.Column("", "name"), *doc.columns(("pauses", "total", "mean", "longest"))),
        tuple(
            doc.row(
                _pause_name(each.kind),
                f"{each.count:,}",
                format_duration(each.total_s),
                format_duration(each.total_s / max(each.count, 1)),
                format_duration(each.longest_s),
            )
            for each in paused.kinds
        ),
    )
    rested, verdict = paused.rested_batches, paused.as_steps
    also = f", as are {counted(rested, 'batch')} in the queue when one ended" if rested else ""
    as_steps = (
        f"Left out of all other figures{also}. Counted as training steps: {verdict.verdict}, "
        f"{format_share(verdict.starved_fraction)} of the time "
        f"(95 %: {share_range(verdict.starved_interval)})."
    )
    unnamed = any(each.kind.evidence == "length" for each in paused.kinds)
    hint = 'Put pipeprof.pause("…") around a pause to give it a name and an exact length.'
    note = "time between two batches that is no training step"
    return doc.section(name, title, table, as_steps, hint if unnamed else None, note=note)


def _pause_name(kind: PauseKind) -> str:
    """Return the name of the pause, or of the loader that ran in it."""
    if kind.evidence == "length":
        return "unnamed, far longer than a step"
    return f"loader {kind.name}" if kind.evidence == "loader" else kind.name
