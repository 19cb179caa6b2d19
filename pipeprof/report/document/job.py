"""The document of a job: its verdict, who is last, and what each cure would give."""

from __future__ import annotations

from typing import Final

from pipeprof.model import Cure, JobRank, TrainingJob
from pipeprof.report.document import blocks as doc
from pipeprof.report.document.charts import ShareMap
from pipeprof.report.document.wording import opening
from pipeprof.units import counted, format_count, format_duration, format_share, percent

_MOST_RANKS: Final = 10
"""Most ranks in the table; those that hold the job up come first."""
_STEPS: Final = "from the first common step to the last"
_SHADES: Final = " ▁▂▃▄▅▆▇█"
"""How a share is drawn as text, from 0 to 1."""
_CURES: Final = {
    "rank": "rank {name} loads like the others",
    "host": "the ranks of {name} load like the others",
    "tails": "no batch is later than usual",
    "loading": "data are free",
}


def job_document(job: TrainingJob) -> doc.Document:
    """Return the document of ``job``."""
    return doc.Document(
        title=f"{job.name}, {counted(job.world_size, 'rank')}",
        subject="job",
        created=job.created,
        version=job.pipeprof,
        sections=(
            doc.section("verdict", "", opening(job.verdict, job.headline)),
            _figures(job),
            _blame(job),
            _ranks(job),
            _map(job),
            _cures(job),
            doc.section("notes", "Notes", *map(doc.Paragraph, job.notes)),
        ),
    ).filled()


def _figures(job: TrainingJob) -> doc.Section:
    if not job.steps:
        return doc.section("figures", "")
    figures = (
        doc.LabelledFigure("samples/s", format_count(job.samples_per_s), "all ranks together"),
        doc.LabelledFigure("a step", format_duration(job.cycle_s), "with its wait"),
    )
    return doc.section("figures", "Throughput", doc.KeyFigures(figures))


def _blame(job: TrainingJob) -> doc.Section:
    rows = tuple(
        doc.row(doc.term(cause), doc.Cell(percent(share), share))
        for cause, share in job.blame.items()
        if share >= 0.005
    )
    columns = (doc.Column("cause", "name"), *doc.columns(("of the job's stall",)))
    return doc.section("blame", "What the last rank's batch waited for", doc.Table(columns, rows))


def _ranks(job: TrainingJob) -> doc.Section:
    shown = job.ranks[:_MOST_RANKS]
    table = doc.Table(
        (doc.Column("rank", "name"), doc.Column("host", "name", 1),
         *doc.columns(("of the job's stall", "last in")), doc.Column("cause", "name"),
         *doc.columns(("starved, by itself",))),
        tuple(map(_rank_row, shown)),
    )  # fmt: skip
    blocks: list[doc.Block] = [table]
    if len(job.ranks) > len(shown):
        blocks.append(doc.Footnote(f"The first {len(shown)} of {len(job.ranks)} ranks."))
    return doc.section("ranks", "Ranks", *blocks)


def _rank_row(rank: JobRank) -> doc.Row:
    return doc.row(
        str(rank.rank),
        rank.host or "unknown",
        doc.Cell(percent(rank.stall_share), rank.stall_share),
        f"{percent(rank.last_share)} of steps",
        doc.term(rank.bottleneck or "none"),
        format_share(rank.starved_fraction),
    )


def _map(job: TrainingJob) -> doc.Section:
    """Return for whose batches the job waited, from the first common step to the last."""
    if job.map is None or job.verdict != "starved":
        return doc.section("map", "")
    shares = {
        row.name: tuple(
            late_s / part_s for late_s, part_s in zip(row.late_s, job.map.parts_s, strict=True)
        )
        for row in job.map.rows
    }
    text = "how much of the time all ranks waited for a batch of a rank, or of a host's ranks"
    chart = doc.Chart("map", "Who held the job up, and when", text, ShareMap(_STEPS, shares))
    worst = sorted(job.map.rows, key=lambda row: -sum(row.late_s))[:_MOST_RANKS]
    chosen = {row.name for row in worst if sum(row.late_s) > 0}
    rows = tuple(
        doc.row(name, "".join(_SHADES[round(each * (len(_SHADES) - 1))] for each in shares[name]))
        for name in shares
        if name in chosen
    )
    table = doc.Table((doc.Column("", "name"), doc.Column(_STEPS, "name")), rows)
    return doc.section("map", "Who held the job up, and when", chart, table)


def _cures(job: TrainingJob) -> doc.Section:
    rows = tuple(doc.row(_cure(cure), f"+{percent(cure.gain)}") for cure in job.cures)
    columns = (doc.Column("if", "text"), *doc.columns(("samples/s of the job",)))
    return doc.section("cures", "What each cure would give", doc.Table(columns, rows[:_MOST_RANKS]))


def _cure(cure: Cure) -> str:
    return _CURES[cure.of].format(name=cure.name)
