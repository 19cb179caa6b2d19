"""Runs against each other as a page: what became of the throughput, what was changed, and where the
time went."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

from pipeprof.model import Comparison, Speed, TwoRuns
from pipeprof.report import terminal_comparison as terminal
from pipeprof.report.html import charts
from pipeprof.report.html.comparison_chart import differences, drawn
from pipeprof.report.html.kept import kept
from pipeprof.report.html.shapes import (
    Block,
    Cell,
    Chart,
    Column,
    Fact,
    Heading,
    Lines,
    Pairs,
    Said,
    Section,
    Table,
    Tone,
    View,
    row,
)
from pipeprof.report.html.words import word
from pipeprof.report.journey import in_order
from pipeprof.report.phrases import shorten
from pipeprof.units import format_count, format_share

_FILE = 60
"""Most characters for the name of a file in a title."""
_TONES: Final[dict[str, Tone]] = {"faster": "best", "slower": "worst"}


def comparison_view(comparison: Comparison) -> View:
    pairs = comparison.pairs
    first, last = pairs[0].before, pairs[-1].after
    several = len(pairs) > 1
    return View(
        title=" → ".join(shorten(run.file, _FILE) for run in (first, last)),
        what="comparison",
        created=last.created,
        verdicts=tuple(_said(pair, named=several) for pair in pairs),
        facts=() if several else _facts(pairs[0]),
        opening=_opening(pairs),
        sections=(
            *_ranks(comparison),
            _changed(pairs),
            _throughput(comparison),
            _stages(pairs),
            kept("sure", "How sure", lambda page: terminal.how_sure(page, comparison), ""),
        ),
        version=last.pipeprof,
    )  # fmt: skip


def _ranks(comparison: Comparison) -> Iterator[Section]:
    if comparison.ranks is not None:
        yield kept("ranks", "Ranks of one training",
                   lambda page: terminal.ranks(page, comparison), "")  # fmt: skip


def _said(pair: TwoRuns, named: bool) -> Said:
    """The headline without the word that stands beside it as a badge."""
    sentence = pair.headline.partition(": ")[2] or pair.headline
    of = shorten(pair.after.file, _FILE) if named else ""
    return Said(terminal.WORDS[pair.speed.shown], sentence, of)


def _facts(pair: TwoRuns) -> tuple[Fact, ...]:
    told = dict(terminal.summary(pair))
    after = pair.after
    tone = _TONES.get(pair.speed.shown, "")
    return (
        Fact("speed", _times(pair.speed), f"the samples/s of before; {_span(pair.speed)}", tone),
        Fact("throughput", f"{format_count(after.samples_per_s)}/s", told["throughput"]),
        Fact("starved", format_share(after.starved_fraction), told["starved"]),
        Fact("to blame", terminal.blamed(after), told["to blame"]),
    )


def _times(speed: Speed) -> str:
    return f"{speed.ratio:.2f}×" if speed.ratio is not None else "unknown"


def _span(speed: Speed) -> str:
    if speed.interval is None:
        return "too few batches to say how sure"
    return f"95 %: {speed.interval[0]:.2f}–{speed.interval[1]:.2f}"


def _opening(pairs: tuple[TwoRuns, ...]) -> tuple[Block, ...]:
    blocks: list[Block] = []
    for pair in pairs:
        if len(pairs) > 1:
            blocks.append(Heading(shorten(pair.after.file, _FILE)))
        if pair.unlike:
            blocks.append(
                Lines((f"Not a comparison of like with like: {'; '.join(pair.unlike)}.",))
            )
        blocks.append(Pairs(tuple(terminal.summary(pair))))
    return tuple(blocks)


def _changed(pairs: tuple[TwoRuns, ...]) -> Section:
    blocks: list[Block] = []
    for pair in pairs:
        if len(pairs) > 1:
            blocks.append(Heading(shorten(pair.after.file, _FILE)))
        blocks += kept("", "", partial(terminal.changed, pair=pair), "").blocks
    return Section("changed", "What was changed", "", tuple(blocks))


def _throughput(comparison: Comparison) -> Section:
    title = "Throughput, one after the other"
    runs = list({run.file: run for pair in comparison.pairs
                 for run in (pair.before, pair.after)}.values())  # fmt: skip
    points: list[charts.Point] = [
        ("measured", f"{place} {run.file}", run.samples_per_s, run.samples_interval)
        for place, run in enumerate(runs, 1)
    ]
    told = " ".join(
        f"{place}, {shorten(run.file, _FILE)}: {format_count(run.samples_per_s)} samples/s."
        for place, run in enumerate(runs, 1)
    )
    table = Table(
        title,
        (Column("run", right=False), *(Column(name) for name in terminal.OVERVIEW[:4]),
         *(Column(name, right=False) for name in terminal.OVERVIEW[4:])),
        tuple(row(*cells) for cells in terminal.overview(comparison)),
    )  # fmt: skip
    note = "samples/s; lines: 95 % of each run by itself"
    chart = Chart("throughput", title, told, charts.throughput(points, None))
    return Section("throughput", title, note, (chart, table))


def _stages(pairs: tuple[TwoRuns, ...]) -> Section:
    title = "Where the time goes"
    blocks: list[Block] = []
    for place, pair in enumerate(pairs):
        if len(pairs) > 1:
            blocks.append(Heading(shorten(pair.after.file, _FILE)))
        if drawn(pair):
            name = "stages" + "abcdefghijklmnopqrstuvwxyz"[place % 26] * (place // 26 + 1)
            said = "Seconds of each stage, after less before, with 95 %; the slack is not drawn. "
            blocks.append(Chart(name, "What changed", said + _most(pair), differences(pair)))
        if pair.stages:
            blocks += [_table(pair), Lines((terminal.legend(pair),))]
        else:
            blocks.append(Lines(("Unknown: no stage was seen in either run.",)))
    note = f"mean per {pairs[0].per}" if len({pair.per for pair in pairs}) == 1 else "mean"
    return Section("stages", title, note, tuple(blocks))


def _most(pair: TwoRuns) -> str:
    name = max(drawn(pair), key=lambda name: abs(pair.stages[name].change or 0.0))
    return f"Most of all {name}, by {terminal.signed(pair.stages[name].change or 0.0)}."


def _table(pair: TwoRuns) -> Table:
    columns = [Column("stage", right=False), *(Column(name) for name in terminal.STAGES)]
    rows = []
    for name, nested in in_order(pair.stages):
        _, *figures = terminal.stage_cells(name, nested, pair.stages[name])
        worse = terminal.is_worse(name, pair.stages[name])
        cell = Cell(name, word=word(name), within=nested)
        rows.append(row(cell, *figures, tone="worst" if worse else ""))
    columns.append(Column("shown", right=False))
    return Table(f"Stages, per {pair.per}", tuple(columns), tuple(rows))
