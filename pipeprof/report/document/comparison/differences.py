"""Build the tables and charts that compare the figures of two runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from pipeprof.model import Difference, TwoRuns
from pipeprof.report.document import blocks as doc
from pipeprof.report.document.charts import Bar, Bars, Standing
from pipeprof.report.document.journey import in_order
from pipeprof.report.document.wording import is_emulated, or_unknown
from pipeprof.units import format_duration, format_share

_SIGNIFICANT: Final = {"more": "more", "less": "less", "none": "", "unknown": "unknown"}
"""`Difference.shown` → the text of the last column."""
_SLACK: Final = ("ready", "reorder")
"""Stages that are not drawn: longer is not worse there, and they may dwarf the others."""


def run_differences(pair: TwoRuns) -> doc.Table:
    """Compare the starved share and the stall of the whole runs."""
    emulated = sum(is_emulated(run.accelerator) for run in (pair.before, pair.after))
    remark = ("", " (one run emulated)", " (emulated)")[emulated]
    rows = (
        _row(f"starved{remark}", pair.starved, format_share, lambda by: f"{by * 100:+.1f} points"),
        _row(f"stall per {pair.per}", pair.stall),
    )
    return doc.Table(_columns(""), rows)


def stage_differences(pair: TwoRuns, place: int) -> list[doc.Block]:
    """Compare the stages of both runs; ``place`` is the pair's index in the comparison."""
    if not pair.stages:
        return [doc.Footnote("Unknown: no stage was measured in either run.")]
    ordered = in_order(pair.stages)
    rows = (
        _row(doc.term(name), pair.stages[name], slack=name in _SLACK, nested=nested)
        for name, nested in ordered
    )
    table = doc.Table(_columns("stage"), tuple(rows))
    drawn = {
        name: pair.stages[name]
        for name, _ in ordered
        if name not in _SLACK and pair.stages[name].change is not None
    }
    if not drawn:
        return [table, doc.Footnote(_legend(pair))]
    most = max(drawn, key=lambda name: abs(drawn[name].change or 0.0))
    text = (
        "Change in seconds of each stage with its 95 % interval, without ready and reorder. "
        f"The largest change is {most}, by {_signed(drawn[most].change or 0.0)}."
    )
    chart = doc.Chart(f"stages-{place + 1}", "What changed", text, _bars(drawn, pair.per))
    return [chart, table, doc.Footnote(_legend(pair))]


def _signed(seconds: float) -> str:
    """Format a change in seconds: ``"+7.50 ms"``."""
    return f"{'+' if seconds >= 0 else ''}{format_duration(seconds)}"


def _interval(difference: Difference, write: Callable[[float], str] = _signed) -> str:
    """Format the interval of a difference: ``"+6.10 ms to +8.90 ms"``."""
    ends = difference.interval
    return f"{write(ends[0])} to {write(ends[1])}" if ends else "unknown"


def _columns(first: str) -> tuple[doc.Column, ...]:
    return (
        doc.Column(first, "name"), *doc.columns(("before", "after", "change")),
        doc.Column("95 %", spare=2), doc.Column("relative", spare=1),
        doc.Column("significant", "name"),
    )  # fmt: skip


def _row(
    name: doc.Cell | str,
    difference: Difference,
    write: Callable[[float], str] = format_duration,
    change: Callable[[float], str] = _signed,
    *,
    slack: bool = False,
    nested: bool = False,
) -> doc.Row:
    """Compare one figure of both runs. More of it is worse, unless it is ``slack``."""
    before, after = or_unknown(difference.before, write), or_unknown(difference.after, write)
    changes = ("", "", "")
    if difference.change is not None:
        ratio = difference.change / difference.before if difference.before else None
        relative = f"{100 * ratio:+.0f} %" if ratio is not None else ""
        changes = (change(difference.change), _interval(difference, change), relative)
    worse = difference.shown == "more" and not slack
    cells = (name, before, after, *changes, _SIGNIFICANT[difference.shown])
    return doc.row(*cells, tone="bad" if worse else "", nested=nested)


def _bars(drawn: Mapping[str, Difference], per: str) -> Bars:
    standings: dict[str, Standing] = {"more": "worst", "less": "best"}
    bars = []
    for name, each in drawn.items():
        change = each.change or 0.0
        text = f"{name}: {_signed(change)} ({_interval(each)})"
        bars.append(Bar(name, change, "", text, standings.get(each.shown, ""), each.interval))
    return Bars("s", f"after minus before, per {per}", tuple(bars))


def _legend(pair: TwoRuns) -> str:
    """Explain the last column."""
    text = (
        "Significant: more or less, at 95 % for all stages together; empty if no difference can "
        "be shown."
    )
    if any(stage.shown == "unknown" for stage in pair.stages.values()):
        text += " Unknown: not measured in one of the runs, or in too few recorded batches."
    return text
