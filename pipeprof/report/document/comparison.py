"""Runs against each other: what became of the throughput, what was changed, where time went."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from pipeprof.model import Change, Compared, Comparison, Difference, TwoRuns
from pipeprof.report.document.blocks import (
    Block,
    Chart,
    Column,
    Document,
    Note,
    Paragraph,
    Row,
    Section,
    Subheading,
    Table,
    Verdict,
    columns,
    figures,
    row,
    term,
)
from pipeprof.report.document.charts import Differences, Point, Throughputs
from pipeprof.report.document.journey import in_order
from pipeprof.report.document.wording import count_range, is_emulated, opening, times
from pipeprof.report.text import shorten
from pipeprof.units import (
    counted,
    format_bytes,
    format_count,
    format_duration,
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
_SHOWN: Final = {"more": "longer", "less": "shorter", "none": "", "unknown": "unknown"}
_SLACK: Final = ("ready", "reorder")
"""Longer is not worse; it may be far longer than work, so it is not drawn."""
_OF: Final = {"loader": "loader", "data": "data", "machine": "machine", "verdict": "rule"}
_FILE: Final = 60
"""Most characters of the name of a file."""
_RULE: Final = (
    "no difference that this data can show where the interval holds 1, or where it is less than 3 %"
)


def comparison_document(comparison: Comparison) -> Document:
    pairs = comparison.pairs
    first, last = pairs[0].before, pairs[-1].after
    return Document(
        title=" → ".join(shorten(run.file, _FILE) for run in (first, last)),
        subject="comparison",
        created=last.created,
        version=last.pipeprof,
        sections=(
            _ranks(comparison),
            Section("verdict", "", tuple(_verdict(pair, len(pairs) > 1) for pair in pairs)),
            _throughput(comparison),
            Section("runs", "Before and after", _for_each(pairs, _summary)),
            Section("changed", "What was changed", _for_each(pairs, _changes)),
            _stages(pairs),
            _confidence(comparison),
        ),
    ).filled()


def _ranks(comparison: Comparison) -> Section:
    skew = comparison.ranks
    name, title = "ranks", "Ranks of one training"
    if skew is None:
        return Section(name, title, ())
    return Section(name, title, (Paragraph(skew.headline),), skew.grade)


def _verdict(pair: TwoRuns, named: bool) -> Verdict:
    of = shorten(pair.after.file, _FILE) if named else ""
    return opening(_WORDS[pair.speed.shown], pair.headline, of)


def _for_each(
    pairs: Sequence[TwoRuns], blocks_of: Callable[[TwoRuns], list[Block]]
) -> tuple[Block, ...]:
    """Under the name of each later run, where there are several."""
    found: list[Block] = []
    for pair in pairs:
        if len(pairs) > 1:
            found.append(Subheading(shorten(pair.after.file, _FILE)))
        found += blocks_of(pair)
    return tuple(found)


def _throughput(comparison: Comparison) -> Section:
    pairs = comparison.pairs
    runs = list({run.file: run for pair in pairs for run in (pair.before, pair.after)}.values())
    points = tuple(
        Point(f"{place} {run.file}", "measured", run.samples_per_s, run.samples_interval)
        for place, run in enumerate(runs, 1)
    )
    text = " ".join(
        f"{place}, {shorten(run.file, _FILE)}: {format_count(run.samples_per_s)} samples/s."
        for place, run in enumerate(runs, 1)
    )
    title = "Runs, each against the first"
    if len({pair.before.file for pair in pairs}) > 1:
        title += " of its data"
    chart = Chart("throughput", title, text, Throughputs(points, None))
    table = Table(
        (Column("run", "text"), Column("samples/s"), Column("speed"), Column("95 %", spare=2),
         Column("starved"), Column("verdict", "name", 1), Column("to blame", "name")),
        tuple(_runs(pairs)),
    )  # fmt: skip
    return Section("throughput", title, (chart, table))


def _runs(pairs: Iterable[TwoRuns]) -> Iterable[Row]:
    bases: set[str] = set()
    for pair in pairs:
        if pair.before.file not in bases:
            yield _run(pair.before, times(1.0), "")
            bases.add(pair.before.file)
        ratio, interval = pair.speed.ratio, pair.speed.interval
        yield _run(
            pair.after,
            f"{ratio:.2f}×" if ratio is not None else "unknown",
            f"{interval[0]:.2f}–{interval[1]:.2f}" if interval else "unknown",
        )


def _run(run: Compared, speed: str, interval: str) -> Row:
    return row(
        shorten(run.file, _FILE),
        format_count(run.samples_per_s),
        speed,
        interval,
        format_share(run.starved_fraction),
        run.verdict,
        term(_blamed(run)),
    )


def _blamed(run: Compared) -> str:
    return "nothing" if run.verdict == "fed" else run.bottleneck or "unknown"


def _summary(pair: TwoRuns) -> list[Block]:
    before, after = pair.before, pair.after
    rows = [
        ("before", f"{before.file}: {before.name}, {before.created}"),
        ("after", f"{after.file}: {after.name}, {after.created}"),
        ("throughput", f"{_rate(before)} → {_rate(after)} samples/s"),
        ("starved", f"{_starved(pair)}{_emulated(pair)}"),
        ("stall", _stall(pair)),
        ("verdict", f"{before.verdict} → {after.verdict}"),
        ("to blame", f"{_blamed(before)} → {_blamed(after)}"),
    ]
    unlike = f"Not a comparison of like with like: {'; '.join(pair.unlike)}."
    return [figures(rows), *[Paragraph(unlike)] * bool(pair.unlike)]


def _rate(run: Compared) -> str:
    return f"{format_count(run.samples_per_s)} ({count_range(run.samples_interval)})"


def _emulated(pair: TwoRuns) -> str:
    which = [is_emulated(run.accelerator) for run in (pair.before, pair.after)]
    if not any(which):
        return ""
    return " (emulated accelerator)" if all(which) else " (one accelerator emulated)"


def _starved(pair: TwoRuns) -> str:
    found = pair.starved
    before, after = map(_share, (found.before, found.after))
    text = f"{before} → {after} of the time"
    if found.change is None:
        return text
    span = found.interval
    range_ = f" (95 %: {_points(span[0])} to {_points(span[1])})" if span else ""
    return f"{text}: {_points(found.change)} points{range_}{_none(found)}"


def _stall(pair: TwoRuns) -> str:
    found = pair.stall
    text = f"{_duration(found.before)} → {_duration(found.after)} a {pair.per}"
    if found.change is None:
        return text
    range_ = f" (95 %: {span_of(found)})" if found.interval else ""
    return f"{text}: {signed(found.change)}{range_}{_none(found)}"


def _none(difference: Difference) -> str:
    return ", no difference shown" if difference.shown == "none" else ""


def _share(share: float | None) -> str:
    return format_share(share) if share is not None else "unknown"


def _duration(seconds: float | None) -> str:
    return format_duration(seconds) if seconds is not None else "unknown"


def _points(share: float) -> str:
    return f"{share * 100:+.1f}"


def signed(seconds: float) -> str:
    """``"+7.50 ms"``."""
    return f"{'+' if seconds >= 0 else ''}{format_duration(seconds)}"


def span_of(difference: Difference) -> str:
    """Of its interval, ``"+6.10 ms to +8.90 ms"``."""
    span = difference.interval
    return f"{signed(span[0])} to {signed(span[1])}" if span else "unknown"


def _changes(pair: TwoRuns) -> list[Block]:
    if not pair.changes:
        return [Note("Nothing that profiles hold: the same settings, data and machine.")]
    titles = (*columns(("", ""), "name"), *columns(("before", "after"), "text"))
    return [
        Table(
            titles,
            tuple(
                row(_OF[change.of], change.name, *(_value(change, each) for each in
                                                   (change.before, change.after)))
                for change in pair.changes
            ),
        )
    ]  # fmt: skip


def _value(change: Change, value: str | float | None) -> str:
    """A setting as people read it."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, str):
        return value
    if change.name.endswith("bytes"):
        return format_bytes(value)
    return format_share(value) if change.name == "threshold" else f"{value:,}"


def _stages(pairs: Sequence[TwoRuns]) -> Section:
    blocks = _for_each(pairs, lambda pair: _differences(pair, pairs.index(pair)))
    note = f"mean per {pairs[0].per}" if len({pair.per for pair in pairs}) == 1 else "mean"
    return Section("stages", "Where the time goes", blocks, note)


def _differences(pair: TwoRuns, place: int) -> list[Block]:
    if not pair.stages:
        return [Note("Unknown: no stage was seen in either run.")]
    ordered = in_order(pair.stages)
    rows = tuple(_stage(name, nested, pair.stages[name]) for name, nested in ordered)
    table = Table(
        (Column("stage", "name"), *columns(("before", "after", "change")),
         Column("95 %", spare=2), Column("by", spare=1), Column("shown", "name")),
        rows,
    )  # fmt: skip
    drawn = {
        name: pair.stages[name]
        for name, _ in ordered
        if name not in _SLACK and pair.stages[name].change is not None
    }
    if not drawn:
        return [table, Note(_legend(pair))]
    most = max(drawn, key=lambda name: abs(drawn[name].change or 0.0))
    text = (
        "Seconds of each stage, after less before, with 95 %; the slack is not drawn. "
        f"Most of all {most}, by {signed(drawn[most].change or 0.0)}."
    )
    chart = Chart(f"stages-{place + 1}", "What changed", text, Differences(drawn, pair.per))
    return [chart, table, Note(_legend(pair))]


def _stage(name: str, nested: bool, stage: Difference) -> Row:
    change, before = stage.change, stage.before
    worse = stage.shown == "more" and name not in _SLACK
    return row(
        term(name),
        _duration(before),
        _duration(stage.after),
        signed(change) if change is not None else "",
        span_of(stage) if change is not None else "",
        f"{100 * change / before:+.0f} %" if change is not None and before else "",
        _SHOWN[stage.shown],
        tone="bad" if worse else "",
        nested=nested,
    )


def _legend(pair: TwoRuns) -> str:
    """What the last column says."""
    text = (
        "Longer, shorter: as these data show, of all stages together with 95 %; no word: no "
        "difference that they can show"
    )
    if any(stage.shown == "unknown" for stage in pair.stages.values()):
        text += "; unknown: not seen in one of the two, or in too few of the batches kept"
    return f"{text}."


def _confidence(comparison: Comparison) -> Section:
    pairs = comparison.pairs
    runs = {run.accelerator: run for pair in pairs for run in (pair.before, pair.after)}
    rows = [
        *((shorten(pair.after.file, _FILE) if len(pairs) > 1 else "intervals", _method(pair))
          for pair in pairs),
        ("throughput", _RULE),
        *(("accelerator", accelerator or "unknown") for accelerator in runs),
        *(("note", note) for note in comparison.notes),
    ]  # fmt: skip
    return Section("confidence", "Confidence", (figures(rows),), evidence=True)


def _method(pair: TwoRuns) -> str:
    before, after = pair.before, pair.after
    return (
        f"95 %, by block bootstrap over {before.measured_batches:,} and "
        f"{counted(after.measured_batches, 'batch')}, of stages over the {before.kept_batches:,} "
        f"and {after.kept_batches:,} that the profiles keep; widened by the "
        f"{percent(pair.between_runs)} that two runs of one setting may differ by"
    )
