"""One figure of both runs, and the stages of both."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from pipeprof.model import Difference, TwoRuns
from pipeprof.report.document import blocks as doc
from pipeprof.report.document.charts import Bar, Bars, Standing
from pipeprof.report.document.journey import in_order
from pipeprof.report.document.wording import is_emulated, or_unknown
from pipeprof.units import format_duration, format_share

_SHOWN: Final = {"more": "more", "less": "less", "none": "", "unknown": "unknown"}
_SLACK: Final = ("ready", "reorder")
"""Longer is not worse; it may be far longer than work, so it is not drawn."""


def run_differences(pair: TwoRuns) -> doc.Table:
    """Of the whole runs."""
    emulated = sum(is_emulated(run.accelerator) for run in (pair.before, pair.after))
    of = ("", " (one accelerator emulated)", " (emulated accelerator)")[emulated]
    rows = (
        _row(f"starved{of}", pair.starved, format_share, lambda by: f"{by * 100:+.1f} points"),
        _row(f"stall per {pair.per}", pair.stall),
    )
    return doc.Table(_columns(""), rows)


def stage_differences(pair: TwoRuns, place: int) -> list[doc.Block]:
    """``place``: of the pair among several."""
    if not pair.stages:
        return [doc.Footnote("Unknown: no stage was seen in either run.")]
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
        "Seconds of each stage, after less before, with 95 %; the slack is not drawn. "
        f"Most of all {most}, by {_signed(drawn[most].change or 0.0)}."
    )
    chart = doc.Chart(f"stages-{place + 1}", "What changed", text, _bars(drawn, pair.per))
    return [chart, table, doc.Footnote(_legend(pair))]


def _signed(seconds: float) -> str:
    """``"+7.50 ms"``."""
    return f"{'+' if seconds >= 0 else ''}{format_duration(seconds)}"


def _span(difference: Difference, write: Callable[[float], str] = _signed) -> str:
    """Of its interval, ``"+6.10 ms to +8.90 ms"``."""
    span = difference.interval
    return f"{write(span[0])} to {write(span[1])}" if span else "unknown"


def _columns(first: str) -> tuple[doc.Column, ...]:
    return (
        doc.Column(first, "name"), *doc.columns(("before", "after", "change")),
        doc.Column("95 %", spare=2), doc.Column("by", spare=1), doc.Column("shown", "name"),
    )  # fmt: skip


def _row(
    name: doc.Cell | str,
    found: Difference,
    write: Callable[[float], str] = format_duration,
    change: Callable[[float], str] = _signed,
    *,
    slack: bool = False,
    nested: bool = False,
) -> doc.Row:
    """One figure of both runs. More of it is worse, unless it is ``slack``."""
    before, after = or_unknown(found.before, write), or_unknown(found.after, write)
    changed = ("", "", "")
    if found.change is not None:
        by = f"{100 * found.change / found.before:+.0f} %" if found.before else ""
        changed = (change(found.change), _span(found, change), by)
    worse = found.shown == "more" and not slack
    cells = (name, before, after, *changed, _SHOWN[found.shown])
    return doc.row(*cells, tone="bad" if worse else "", nested=nested)


def _bars(drawn: Mapping[str, Difference], per: str) -> Bars:
    standings: dict[str, Standing] = {"more": "worst", "less": "best"}
    return Bars("s", f"after less before, per {per}", tuple(
        Bar(name, each.change or 0.0, "", f"{name}: {_signed(each.change or 0.0)} ({_span(each)})",
            standings.get(each.shown, ""), each.interval)
        for name, each in drawn.items()
    ))  # fmt: skip


def _legend(pair: TwoRuns) -> str:
    """What the last column says."""
    text = (
        "More, less: as these data show, of all stages together with 95 %; no word: no "
        "difference that they can show"
    )
    if any(stage.shown == "unknown" for stage in pair.stages.values()):
        text += "; unknown: not seen in one of the two, or in too few of the batches kept"
    return f"{text}."
