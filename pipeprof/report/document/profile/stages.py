"""Present where the time of a batch goes: its stages, and the CPU time and waits of its worker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pipeprof.model import Profile
from pipeprof.report.document import blocks as doc
from pipeprof.report.document.charts import Stacks, StageSpread
from pipeprof.report.document.journey import JourneyStage, journey
from pipeprof.report.document.profile.key_figures import stage_of
from pipeprof.report.document.wording import emulated
from pipeprof.units import counted, format_bytes, format_count, format_duration, format_share

REST: Final = "rest of fetch"
IN_FETCH: Final = ("read", "decode", "transform", REST)
"""The parts of `fetch` in the order in which they are drawn."""


def stages(profile: Profile) -> doc.Section:
    """Return the times of all stages, as charts and as a table."""
    rows = journey(profile.stages, profile.config.num_workers)
    drawn = (_journey(rows), _table(profile, rows), _spread(rows)) if rows else ()
    legend = _legend(profile, rows)
    return doc.section("stages", "Where the time goes", *drawn, *legend, note="per batch")


def _journey(rows: Sequence[JourneyStage]) -> doc.Chart | None:
    seconds = mean_seconds(rows)
    if not seconds:
        return None
    whole_s = sum(seconds.values())
    parts = {name: part_s / whole_s for name, part_s in seconds.items()}
    most = max(parts, key=lambda name: parts[name])
    text = (
        f"Of a batch's time from fetch to the end of its step, {most} takes the most: "
        f"{format_share(parts[most])}."
    )
    data = Stacks("share", "share of a batch's journey", {"batch": parts})
    return doc.Chart("journey", "A batch's journey", text, data)


def mean_seconds(rows: Sequence[JourneyStage]) -> dict[str, float]:
    """Return stage → mean seconds per batch, with `fetch` split into its parts and the rest.

    No time is counted twice. Empty where the time of fetching is unknown.
    """
    shared = [each for each in rows if each.share is not None]
    inner = IN_FETCH[:-1]
    total_s: dict[str, float] = {}
    for each in shared:
        if each.name == "fetch":
            parts_s = sum(s.stats.total_s for s in shared if s.nested and s.name in inner)
            total_s[REST if parts_s else "fetch"] = max(each.stats.total_s - parts_s, 0.0)
        elif not each.nested or each.name in inner:
            total_s[each.name] = each.stats.total_s
    batches = max((each.stats.count for each in shared), default=1)
    first = {name: total_s[name] for name in IN_FETCH if total_s.get(name)}
    return {name: s / max(batches, 1) for name, s in {**first, **total_s}.items() if s > 0}


def _spread(rows: Sequence[JourneyStage]) -> doc.Chart | None:
    timed = {
        each.name: each.stats
        for each in rows
        if each.stats.source != "unknown" and each.stats.p99_s > 0
    }
    if not timed:
        return None
    text = "From p50 to p99 of each stage; the figures are in the table above."
    return doc.Chart("spread", "How much stages vary", text, StageSpread(timed))


def _table(profile: Profile, rows: Sequence[JourneyStage]) -> doc.Table:
    reads = any(each.stats.bytes or each.stats.requests for each in rows)
    columns = [
        doc.Column("stage", "name"), doc.Column("where", "name", spare=1), doc.Column("mean"),
        doc.Column("p50", spare=2), doc.Column("p95", spare=4), doc.Column("p99"),
        doc.Column("share", spare=5),
        *(doc.Column("bytes", spare=6), doc.Column("requests", spare=3)) * reads,
    ]  # fmt: skip
    return doc.Table(tuple(columns), tuple(_row(profile, each, len(columns)) for each in rows))


def _row(profile: Profile, each: JourneyStage, width: int) -> doc.Row:
    stats, batches = each.stats, max(profile.measured_batches, 1)
    diagnosis = profile.diagnosis
    worst = stage_of(diagnosis.bottleneck or "") if diagnosis.verdict == "starved" else ""
    name = f"{each.name}{' ~' * (stats.source == 'estimated')}"
    if each.name == "step":
        name += emulated(profile.environment)
    seconds = (stats.mean_s, stats.p50_s, stats.p95_s, stats.p99_s)
    known = stats.source != "unknown"
    cells = [
        doc.term(each.name, name),
        each.where,
        *(format_duration(each_s) if known else "unknown" for each_s in seconds),
        doc.Cell(format_share(each.share), share=each.share) if each.share is not None else "",
        format_bytes(stats.bytes / batches) if stats.bytes else "",
        format_count(stats.requests / batches) if stats.requests else "",
    ]
    return doc.row(*cells[:width], tone="bad" if each.name == worst else "", nested=each.nested)


def _legend(profile: Profile, rows: Sequence[JourneyStage]) -> list[str]:
    parts = []
    if any(each.share is not None for each in rows):
        parts.append(
            "Shares of the time from fetch to the end of the step; wait overlaps other stages."
        )
    if any(each.stats.source == "estimated" for each in rows):
        parts.append("~ estimated.")
    if not rows:
        parts.append("Unknown: no stage was measured.")
    reasons: dict[str, list[str]] = {}
    for stage, reason in profile.missing.items():
        reasons.setdefault(reason, []).append(stage)
    missing = [f"Not measured: {', '.join(names)} ({why})." for why, names in reasons.items()]
    return [" ".join(parts), *missing]


_MEANING: Final = {
    "cpu": "on a core",
    "system": "in the kernel, part of cpu",
    "run-queue": "waiting for a free core",
    "blocked": "waiting for storage, network or a lock",
    "native-threads": "CPU of other threads at the same time",
}


def resources(profile: Profile) -> doc.Section:
    """Return the CPU time and the waits of fetching a batch; empty if no batch was sampled."""
    name, title = "resources", "CPU time and waits of a batch"
    sampled = profile.resources.get("blocked")
    if sampled is None:
        return doc.section(name, title)
    mean_s = {
        each: profile.resources[each].mean_s for each in _MEANING if each in profile.resources
    }
    whole_s = sum(mean_s.get(each, 0.0) for each in ("cpu", "run-queue", "blocked"))
    rows = []
    for each, seconds in mean_s.items():
        share = seconds / whole_s if whole_s > 0 else None
        cell = doc.Cell(format_share(share), share=share) if share is not None else ""
        cells = (each, _MEANING[each], format_duration(seconds), cell)
        rows.append(doc.row(*cells, nested=each == "system"))
    titles = (
        doc.Column("", "name"),
        doc.Column("", "text", spare=1),
        doc.Column("mean"),
        doc.Column("share"),
    )
    table = doc.Table(titles, tuple(rows))
    note = f"mean of {counted(sampled.count, 'sampled batch')}"
    return doc.section(name, title, table, note=note, evidence=True)
