"""Where the time of a batch goes, stage by stage."""

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
"""In the order in which they are drawn."""


def stages(profile: Profile) -> doc.Section:
    found = journey(profile.stages, profile.config.num_workers)
    drawn = (_journey(found), _table(profile, found), _spread(found)) if found else ()
    legend = _legend(profile, found)
    return doc.section("stages", "Where the time goes", *drawn, *legend, note="per batch")


def _journey(found: Sequence[JourneyStage]) -> doc.Chart | None:
    seconds = shares(found)
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


def shares(found: Sequence[JourneyStage]) -> dict[str, float]:
    """Mean seconds of each part of the journey, nothing twice: of `fetch` its parts and the rest.
    Empty where it is not known how long fetching took."""
    shared = [each for each in found if each.share is not None]
    inner = IN_FETCH[:-1]
    parts: dict[str, float] = {}
    for each in shared:
        if each.name == "fetch":
            within = sum(s.stats.total_s for s in shared if s.nested and s.name in inner)
            rest = each.stats.total_s - within
            parts["fetch" if not within else REST] = max(rest, 0.0)
        elif not each.nested or each.name in inner:
            parts[each.name] = each.stats.total_s
    batches = max((each.stats.count for each in shared), default=1)
    first = {name: parts[name] for name in IN_FETCH if parts.get(name)}
    return {name: s / max(batches, 1) for name, s in {**first, **parts}.items() if s > 0}


def _spread(found: Sequence[JourneyStage]) -> doc.Chart | None:
    timed = {
        each.name: each.stats
        for each in found
        if each.stats.source != "unknown" and each.stats.p99_s > 0
    }
    if not timed:
        return None
    text = "From p50 to p99 of each stage; the figures are in the table above."
    return doc.Chart("spread", "How much stages vary", text, StageSpread(timed))


def _table(profile: Profile, found: Sequence[JourneyStage]) -> doc.Table:
    reads = any(each.stats.bytes or each.stats.requests for each in found)
    columns = [
        doc.Column("stage", "name"), doc.Column("where", "name", spare=1), doc.Column("mean"),
        doc.Column("p50", spare=2), doc.Column("p95", spare=4), doc.Column("p99"),
        doc.Column("share", spare=5),
        *(doc.Column("bytes", spare=6), doc.Column("requests", spare=3)) * reads,
    ]  # fmt: skip
    return doc.Table(tuple(columns), tuple(_row(profile, each, len(columns)) for each in found))


def _row(profile: Profile, each: JourneyStage, width: int) -> doc.Row:
    stats, batches = each.stats, max(profile.measured_batches, 1)
    diagnosis = profile.diagnosis
    blamed = stage_of(diagnosis.bottleneck or "") if diagnosis.verdict == "starved" else ""
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
    return doc.row(*cells[:width], tone="bad" if each.name == blamed else "", nested=each.nested)


def _legend(profile: Profile, found: Sequence[JourneyStage]) -> list[str]:
    parts = []
    if any(each.share is not None for each in found):
        parts.append(
            "Shares are of the time from fetch to the step's end; wait runs at the same time."
        )
    if any(each.stats.source == "estimated" for each in found):
        parts.append("~ estimated.")
    if not found:
        parts.append("Unknown: no stage was seen.")
    reasons: dict[str, list[str]] = {}
    for stage, reason in profile.missing.items():
        reasons.setdefault(reason, []).append(stage)
    unseen = [f"Not seen: {', '.join(names)} ({reason})." for reason, names in reasons.items()]
    return [" ".join(parts), *unseen]


_MEANING: Final = {
    "cpu": "on a core",
    "system": "of it in the kernel",
    "run-queue": "wanted a core, had none",
    "blocked": "waited for storage, network or a lock",
    "native-threads": "CPU of other threads, at the same time",
}


def resources(profile: Profile) -> doc.Section:
    """Nothing where no batch was sampled."""
    name, title = "resources", "What a batch took of the machine"
    sampled = profile.resources.get("blocked")
    if sampled is None:
        return doc.section(name, title)
    known = {each: profile.resources[each].mean_s for each in _MEANING if each in profile.resources}
    whole_s = sum(known.get(each, 0.0) for each in ("cpu", "run-queue", "blocked"))
    rows = []
    for each, seconds in known.items():
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
