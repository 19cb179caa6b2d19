"""What each stage took more or less: a bar from nothing, and how sure it is."""

from __future__ import annotations

from pipeprof.model import TwoRuns
from pipeprof.report.html.vega import ACCENT, Datum, Spec, chart, fixed, names
from pipeprof.report.journey import in_order
from pipeprof.report.terminal_comparison import SLACK, signed, span_of

_SIGNED = (
    "datum.value == 0 ? '0' : abs(datum.value) >= 1 ? format(datum.value, '~g') + ' s' : "
    "abs(datum.value) >= 0.001 ? format(datum.value * 1e3, '~g') + ' ms' : "
    "format(datum.value * 1e6, '~g') + ' µs'"
)
"""An axis of seconds on both sides of 0."""
_BAR = 24
"""Pixels from bar to bar."""


def drawn(pair: TwoRuns) -> list[str]:
    """Stages that were seen in both runs, in order. Not slack: it may be far longer than work."""
    found = [name for name, _ in in_order(pair.stages) if name not in SLACK]
    return [name for name in found if pair.stages[name].change is not None]


def differences(pair: TwoRuns) -> Spec:
    data: list[Datum] = []
    for name in drawn(pair):
        stage = pair.stages[name]
        change = stage.change or 0.0
        low, high = stage.interval or (change, change)
        data.append({
            "name": name, "change": change, "low": low, "high": high,
            "tone": stage.shown if stage.shown in ("more", "less") else "none",
            "tip": f"{name}: {signed(change)} ({span_of(stage)})",
        })  # fmt: skip
    reach = max(max(abs(datum["low"]), abs(datum["high"])) for datum in data) * 1.05 or 1.0
    x = {
        "type": "quantitative", "title": f"after less before, per {pair.per}",
        "scale": {"domain": [-reach, reach], "nice": False},
        "axis": {"labelExpr": _SIGNED, "tickCount": 5},
    }  # fmt: skip
    colours = {"more": ACCENT, "less": "var(--step)", "none": "var(--bar)"}
    bars = {
        "mark": {"type": "bar", "height": {"band": 0.6}},
        "encoding": {
            "x": {**x, "field": "change"}, "y": names(data),
            "color": fixed("tone", colours),
            "tooltip": {"field": "tip"},
        },
    }  # fmt: skip
    spans = {
        "mark": {"type": "rule", "strokeWidth": 2, "stroke": "var(--ink)"},
        "encoding": {
            "x": {**x, "field": "low"}, "x2": {"field": "high"}, "y": names(data),
            "tooltip": {"field": "tip"},
        },
    }  # fmt: skip
    zero = {
        "data": {"values": [{"zero": 0}]},
        "mark": {"type": "rule", "stroke": "var(--quiet)"},
        "encoding": {"x": {**x, "field": "zero"}},
    }
    return chart(data, layer=[bars, zero, spans], height=_BAR * len(data))
