"""A batch's way: its stages, what was waited for, who made what when."""

from __future__ import annotations

from pipeprof.model import STORAGE_PARTS, Profile
from pipeprof.report.html import charts, timeline
from pipeprof.report.html.kept import Kept
from pipeprof.report.html.over_time import over_time
from pipeprof.report.html.shapes import (
    Block,
    Cell,
    Chart,
    Column,
    Folded,
    Lines,
    Section,
    Table,
    row,
)
from pipeprof.report.html.words import word
from pipeprof.report.journey import Row, journey
from pipeprof.report.phrases import is_emulated, stall_notes, worth_cells
from pipeprof.report.terminal_making import making
from pipeprof.units import counted, format_bytes, format_count, format_duration, format_share


def where_time_goes(profile: Profile) -> Section:
    title = "Where a batch's time goes"
    rows = journey(profile.stages, profile.config.num_workers)
    blocks: list[Block] = []
    parts = charts.segments(rows)
    spec = charts.way(rows)
    if spec is not None:
        most = max(parts, key=lambda name: parts[name])
        told = (
            f"Of a batch's way from fetch to the end of its step, {most} takes the most: "
            f"{format_share(parts[most] / sum(parts.values()))}."
        )
        blocks.append(Chart("way", "A batch's way", told, spec))
    if rows:
        blocks.append(_stages(profile, rows))
        dots = charts.percentiles({each.name: each.stats for each in rows})
        if dots is not None:
            told = "From p50 to p99 of each stage; the figures are in the table above."
            blocks.append(Chart("percentiles", "How much stages vary", told, dots))
    blocks += _legend(profile, rows)
    page = Kept()
    making(page, profile)
    blocks += page.blocks
    return Section("stages", title, "per batch", tuple(blocks))


def _stages(profile: Profile, rows: list[Row]) -> Table:
    worst = profile.diagnosis.bottleneck if profile.diagnosis.verdict == "starved" else None
    worst = "read" if worst in STORAGE_PARTS else worst
    figures = ("mean", "p50", "p95", "p99")
    reads = any(each.stats.bytes or each.stats.requests for each in rows)
    columns = [Column("stage", right=False), Column("where", right=False)]
    columns += [Column(name, word=word(name)) for name in figures] + [Column("share")]
    columns += [Column("bytes"), Column("requests")] * reads
    batches = max(profile.measured_batches, 1)
    return Table(
        "Stages, per batch",
        tuple(columns),
        tuple(
            row(
                Cell(_name(profile, each), word=word(each.name), within=each.nested),
                each.where,
                *(_figure(each, f"{name}_s") for name in figures),
                Cell(format_share(each.share), share=each.share) if each.share is not None else "",
                *(
                    format_bytes(each.stats.bytes / batches) if each.stats.bytes else "",
                    format_count(each.stats.requests / batches) if each.stats.requests else "",
                )[: 2 * reads],
                tone="worst" if each.name == worst else "",
            )
            for each in rows
        ),
    )


def _name(profile: Profile, each: Row) -> str:
    name = f"{each.name}{' ~' * (each.stats.source == 'estimated')}"
    emulated = is_emulated(profile.environment.accelerator)
    return f"{name} (emulated)" if each.name == "step" and emulated else name


def _figure(each: Row, field: str) -> str:
    known = each.stats.source != "unknown"
    return format_duration(getattr(each.stats, field)) if known else "unknown"


def _legend(profile: Profile, rows: list[Row]) -> list[Block]:
    said = []
    if any(each.share is not None for each in rows):
        said.append("Shares are of the way from fetch to the step's end; wait passes beside it.")
    if any(each.stats.source == "estimated" for each in rows):
        said.append("~ estimated.")
    reasons: dict[str, list[str]] = {}
    for stage, reason in profile.missing.items():
        reasons.setdefault(reason, []).append(stage)
    said += [f"Not seen: {', '.join(stages)} ({reason})." for reason, stages in reasons.items()]
    if not rows:
        said.append("Unknown: no stage was seen.")
    return [Lines(tuple(said))] if said else []


def stall(profile: Profile) -> Section:
    who = "accelerator" if profile.diagnosis.has_step else "loop"
    title = f"What the {who} waited for"
    emulated = " (emulated)" if is_emulated(profile.environment.accelerator) else ""
    if profile.stall_s <= 0 or not profile.blame:
        nothing = (
            "It never waited." if profile.measured_batches else "Unknown: nothing was measured."
        )
        return Section("stall", title, "", (Lines((nothing,)),))
    charged = sorted(profile.blame.items(), key=lambda item: -item[1])
    name, most = charged[0]
    told = (
        f"Of {format_duration(profile.stall_s)} of stall, {name} is charged "
        f"{format_duration(most)}, {format_share(most / profile.stall_s)}."
    )
    table = Table(
        title,
        (
            Column("charged to", right=False), Column("stall"), Column("share"),
            *(Column("25 % cheaper"), Column("free"))[: 2 * bool(profile.worth)],
        ),
        tuple(
            row(
                Cell(name, word=word(name)),
                format_duration(seconds),
                Cell(format_share(seconds / profile.stall_s), share=seconds / profile.stall_s),
                *worth_cells(profile, name),
            )
            for name, seconds in charged
        ),
    )  # fmt: skip
    note = f"{format_duration(profile.stall_s)} of {format_duration(profile.wall_s)}{emulated}"
    picture = Chart("blame", "Blame", told, charts.blame(profile.blame, profile.stall_s))
    return Section("stall", title, note, (picture, table, Lines(stall_notes(profile))))


def on_their_way(profile: Profile) -> Section:
    """The timeline."""
    title = "Batches on their way"
    log = profile.batches
    stretch = timeline.typical(log, timeline.size(profile))
    if stretch is None:
        return Section("timeline", title, "", (Lines(("Unknown: no batches were kept.",)),))
    count = stretch.last - stretch.first
    waited = format_share(stretch.wait_share)
    told = (
        f"{counted(count, 'consecutive batch')}, a lane for main and one for each worker; main "
        f"waited {waited} of their time. In the accent colour: in main, the wait; in a worker, "
        "what it was doing with the batch that main awaited."
    )
    waits = timeline.longest_waits(log, stretch)
    table = Table(
        "The longest waits of these batches",
        (Column("batch"), Column("worker"), Column("main waited"), Column("made in")),
        tuple(
            row(
                f"{wait.batch:,}",
                f"#{wait.worker}" if wait.worker >= 0 else _in_main(wait.worker),
                format_duration(wait.wait_s),
                format_duration(wait.made_s) if wait.made_s is not None else "unknown",
            )
            for wait in waits
        ),
    )
    kept = len(log.asked_s)
    sample = f"all {kept:,} that were kept"
    if count < kept:
        sample = f"{count:,} of {kept:,} that were kept, waiting as much as all of them"
    spec = timeline.timeline(profile, stretch)
    picture = Chart("timeline", title, told, spec, zoomable=True)
    blocks: list[Block] = [*over_time(log, stretch), picture, Folded("The longest waits", table)]
    return Section("timeline", title, sample, tuple(blocks))


def _in_main(worker: int) -> str:
    return "main" if worker == -1 else "unknown"
