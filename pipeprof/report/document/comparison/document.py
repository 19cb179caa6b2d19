"""Compare runs: their throughput, the settings that changed, and where the time went."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from pipeprof.model import Change, Compared, Comparison, TwoJobs, TwoRuns
from pipeprof.report.document import blocks as doc
from pipeprof.report.document.charts import ThroughputPoint, Throughputs
from pipeprof.report.document.comparison.differences import run_differences, stage_differences
from pipeprof.report.document.wording import count_range, opening, or_unknown, times
from pipeprof.report.text import shorten
from pipeprof.units import (
    counted,
    format_bytes,
    format_count,
    format_share,
    percent,
)

_WORDS: Final = {
    "faster": "faster",
    "slower": "slower",
    "none": "no difference",
    "unknown": "too little to tell",
}
"""`Speed.shown` → what a report opens with."""
_AREAS: Final = {"loader": "loader", "data": "data", "machine": "machine", "verdict": "rule"}
"""`Change.of` → the first column of the settings that changed."""
_WHO: Final = {
    "none": "nobody",
    "turns": "late batches of any",
    "all": "all at once",
    "rank": "one rank",
    "host": "one host",
}
"""Who is last with its batch, in words; `TrainingJob.straggling`."""
_LONGEST_FILE: Final = 60
"""Most characters of the name of a file."""
_RULE: Final = "no difference if the interval of the ratio includes 1, or the change is below 3 %"


def comparison_document(comparison: Comparison) -> doc.Document:
    """Return the document of all pairs of runs."""
    pairs = comparison.pairs
    first, last = pairs[0].before, pairs[-1].after
    verdicts = (
        opening(_WORDS[pair.speed.shown], pair.headline, name)
        for pair, name in zip(pairs, _named(pairs), strict=True)
    )
    return doc.Document(
        title=" → ".join(shorten(run.file, _LONGEST_FILE) for run in (first, last)),
        subject="comparison",
        created=last.created,
        version=last.pipeprof,
        sections=(
            doc.section("verdict", "", *verdicts),
            _throughput(comparison),
            _jobs(comparison.jobs),
            doc.section("runs", "Before and after", *_for_each(pairs, _summary)),
            doc.section("changed", "What was changed", *_for_each(pairs, _changes)),
            _stages(pairs),
            _confidence(comparison),
        ),
    ).filled()


def _named(pairs: Sequence[TwoRuns]) -> list[str]:
    """Return the file of each later run; empty names where there is only one pair."""
    return [shorten(pair.after.file, _LONGEST_FILE) if len(pairs) > 1 else "" for pair in pairs]


def _for_each(
    pairs: Sequence[TwoRuns], blocks_of: Callable[[TwoRuns], list[doc.Block]]
) -> Iterator[doc.Block]:
    """Yield the blocks of each pair, under a subheading where there are several pairs."""
    for pair, name in zip(pairs, _named(pairs), strict=True):
        if name:
            yield doc.Subheading(name)
        yield from blocks_of(pair)


def _throughput(comparison: Comparison) -> doc.Section:
    pairs = comparison.pairs
    runs = list({run.file: run for pair in pairs for run in (pair.before, pair.after)}.values())
    points = tuple(
        ThroughputPoint(f"{place} {run.file}", "measured", run.samples_per_s, run.samples_interval)
        for place, run in enumerate(runs, 1)
    )
    text = " ".join(
        f"{place}, {shorten(run.file, _LONGEST_FILE)}: {format_count(run.samples_per_s)} samples/s."
        for place, run in enumerate(runs, 1)
    )
    title = "Runs compared with the first"
    if len({pair.before.file for pair in pairs}) > 1:
        title += " on the same data"
    chart = doc.Chart("throughput", title, text, Throughputs(points, None))
    table = doc.Table(
        (doc.Column("run", "text"), *doc.columns(("samples/s", "speed")),
         doc.Column("95 %", spare=2), doc.Column("starved"), doc.Column("verdict", "name", 1),
         doc.Column("cause", "name")),
        tuple(_run_rows(pairs)),
    )  # fmt: skip
    return doc.section("throughput", title, chart, table)


def _jobs(jobs: Sequence[TwoJobs]) -> doc.Section:
    """Return what all ranks of two jobs do together; empty where no jobs are compared."""
    every = {(each.folder, each.name): each for pair in jobs for each in (pair.before, pair.after)}
    several = len({pair.before.name for pair in jobs}) > 1
    rows = tuple(
        doc.row(
            shorten(f"{each.folder}, {each.name}" if several else each.folder, _LONGEST_FILE),
            str(each.ranks),
            format_count(each.samples_per_s),
            f"{format_share(each.starved_fraction)} "
            f"({percent(each.starved_interval[0])}–{percent(each.starved_interval[1])})",
            each.slowed_by or _WHO[each.straggling],
            doc.term(each.bottleneck or "none"),
        )
        for each in every.values()
    )
    columns = (doc.Column("job", "text"), *doc.columns(("ranks", "samples/s", "starved")),
               doc.Column("slowed by", "name"), doc.Column("cause", "name"))  # fmt: skip
    return doc.section("jobs", "All ranks together", doc.Table(columns, rows) if rows else None)


def _run_rows(pairs: Iterable[TwoRuns]) -> Iterable[doc.Row]:
    """Yield each run once: a first run before the runs that are compared with it."""
    first_runs: set[str] = set()
    for pair in pairs:
        if pair.before.file not in first_runs:
            yield _run_row(pair.before, times(1.0), "")
            first_runs.add(pair.before.file)
        ratio, interval = pair.speed.ratio, pair.speed.interval
        yield _run_row(
            pair.after,
            or_unknown(ratio, "{:.2f}×".format),
            f"{interval[0]:.2f}–{interval[1]:.2f}" if interval else "unknown",
        )


def _run_row(run: Compared, speed: str, interval: str) -> doc.Row:
    return doc.row(
        shorten(run.file, _LONGEST_FILE),
        f"{format_count(run.samples_per_s)} ({count_range(run.samples_interval)})",
        speed,
        interval,
        or_unknown(run.starved_fraction, format_share),
        run.verdict,
        doc.term("none" if run.verdict == "fed" else run.bottleneck or "unknown"),
    )


def _summary(pair: TwoRuns) -> list[doc.Block]:
    before, after = pair.before, pair.after
    runs = [
        ("before", f"{before.file}: {before.name}, {before.created}"),
        ("after", f"{after.file}: {after.name}, {after.created}"),
    ]
    unlike = f"These runs are not directly comparable: {'; '.join(pair.unlike)}."
    return [
        doc.figures(runs),
        run_differences(pair),
        *[doc.Paragraph(unlike)] * bool(pair.unlike),
    ]


def _changes(pair: TwoRuns) -> list[doc.Block]:
    if not pair.changes:
        return [doc.Footnote("Nothing recorded: the settings, data and machine are the same.")]
    titles = (*doc.columns(("", ""), "name"), *doc.columns(("before", "after"), "text"))
    rows = (
        doc.row(_AREAS[each.of], each.name, _value(each, each.before), _value(each, each.after))
        for each in pair.changes
    )
    return [doc.Table(titles, tuple(rows))]


def _value(change: Change, value: str | float | None) -> str:
    """Format the value of a setting."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, str):
        return value
    if change.name.endswith("bytes"):
        return format_bytes(value)
    return format_share(value) if change.name == "threshold" else f"{value:,}"


def _stages(pairs: Sequence[TwoRuns]) -> doc.Section:
    blocks = _for_each(pairs, lambda pair: stage_differences(pair, pairs.index(pair)))
    note = f"mean per {pairs[0].per}" if len({pair.per for pair in pairs}) == 1 else "mean"
    return doc.section("stages", "Where the time goes", *blocks, note=note)


def _confidence(comparison: Comparison) -> doc.Section:
    pairs = comparison.pairs
    runs = {run.accelerator: run for pair in pairs for run in (pair.before, pair.after)}
    rows = [
        *((name or "intervals", _interval_method(pair))
          for pair, name in zip(pairs, _named(pairs), strict=True)),
        ("throughput", _RULE),
        *(("accelerator", accelerator or "unknown") for accelerator in runs),
        *(("note", note) for note in comparison.notes),
    ]  # fmt: skip
    return doc.section("confidence", "Confidence", doc.figures(rows), evidence=True)


def _interval_method(pair: TwoRuns) -> str:
    before, after = pair.before, pair.after
    return (
        f"95 %, by block bootstrap over {before.measured_batches:,} and "
        f"{counted(after.measured_batches, 'batch')}; for stages, over the "
        f"{before.kept_batches:,} and {after.kept_batches:,} recorded ones. Widened by "
        f"{percent(pair.between_runs)}, by which two runs of one setting may differ"
    )
