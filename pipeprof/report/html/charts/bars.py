"""Bars: ceilings, blame, and what stages take more or less."""

from __future__ import annotations

from typing import Final

from pipeprof.report.document.charts import Blame, Differences, Roofline
from pipeprof.report.document.comparison import signed, span_of
from pipeprof.report.document.wording import times
from pipeprof.report.html.charts.vega import (
    ACCENT,
    DEMAND,
    SECONDS,
    Datum,
    Spec,
    chart,
    fixed,
    labels_beside,
    names,
    rule_at,
    samples,
)
from pipeprof.units import format_count, format_duration, format_share

_BAR: Final = 26
"""Pixels from bar to bar."""
_SIGNED: Final = (
    "datum.value == 0 ? '0' : abs(datum.value) >= 1 ? format(datum.value, '~g') + ' s' : "
    "abs(datum.value) >= 0.001 ? format(datum.value * 1e3, '~g') + ' ms' : "
    "format(datum.value * 1e6, '~g') + ' µs'"
)
"""An axis of seconds on both sides of 0."""


def roofline(data: Roofline) -> Spec:
    """A bar for each ceiling, against what the accelerator asks. What is far above is cut off, and
    its figure says so."""
    demand = data.demand
    lowest, highest = min(data.ceilings.values()), max(data.ceilings.values())
    far = max(1.3 * demand, 1.6 * lowest) if demand else 4 * lowest
    far = min(far, highest) if far > 0 else highest
    rows: list[Datum] = [
        {
            "name": name, "samples": min(value, far), "cut": value > far,
            "label": f"{format_count(value)}{' »' if value > far else ''}",
            "tone": _tone(name, value == lowest),
            "tip": f"{name}: {format_count(value)} samples/s"
            + (f", {times(value / demand)} of what the accelerator asks" if demand else ""),
        }
        for name, value in data.ceilings.items()
    ]  # fmt: skip
    # room for a figure on a phone
    bars = _bars(samples("samples", far * 1.4),
                 {"lowest": ACCENT, "demand": DEMAND, "other": "var(--bar)"})  # fmt: skip
    labels = labels_beside("samples")
    for each in (bars, labels):
        each["encoding"]["y"] = names(rows)
    layers = [bars, *([rule_at(demand, "x")] if demand else []), labels]
    return chart(rows, layer=layers, height=_BAR * len(rows))


def _tone(name: str, lowest: bool) -> str:
    """A lowest ceiling that is the accelerator's own holds nothing up."""
    if name == "accelerator":
        return "demand"
    return "lowest" if lowest else "other"


def _bars(x: Spec, colours: dict[str, str]) -> Spec:
    return {
        "mark": {"type": "bar", "height": {"band": 0.7}, "cornerRadiusEnd": 2},
        "encoding": {"x": x, "color": fixed("tone", colours), "tooltip": {"field": "tip"}},
    }


def blame(data: Blame) -> Spec:
    """A bar for what each stall was charged to, the most in the accent colour."""
    rows: list[Datum] = []
    for place, (name, seconds) in enumerate(data.seconds.items()):
        share = format_share(seconds / data.stall_s)
        rows.append({
            "name": name, "seconds": seconds, "tone": "other" if place else "most",
            "label": f"{format_duration(seconds)}, {share}",
            "tip": f"{name}: {format_duration(seconds)}, {share} of the stall",
        })  # fmt: skip
    x = {
        "field": "seconds", "type": "quantitative", "title": "stall charged to it",
        "scale": {"domain": [0, max(data.seconds.values()) * 1.4 or 1]},
        "axis": {"labelExpr": SECONDS, "tickCount": 5},
    }  # fmt: skip
    layers = [_bars(x, {"most": ACCENT, "other": "var(--bar)"}), labels_beside("seconds")]
    return chart(rows, layer=layers, encoding={"y": names(rows)}, height=_BAR * len(rows))


def differences(data: Differences) -> Spec:
    """A bar from nothing for each stage, and its interval."""
    rows: list[Datum] = []
    for name, stage in data.stages.items():
        change = stage.change or 0.0
        low, high = stage.interval or (change, change)
        rows.append({
            "name": name, "change": change, "low": low, "high": high,
            "tone": stage.shown if stage.shown in ("more", "less") else "none",
            "tip": f"{name}: {signed(change)} ({span_of(stage)})",
        })  # fmt: skip
    reach = max(max(abs(row["low"]), abs(row["high"])) for row in rows) * 1.05 or 1.0
    x = {
        "type": "quantitative", "title": f"after less before, per {data.per}",
        "scale": {"domain": [-reach, reach], "nice": False},
        "axis": {"labelExpr": _SIGNED, "tickCount": 5},
    }  # fmt: skip
    bars = _bars({**x, "field": "change"},
                 {"more": ACCENT, "less": "var(--step)", "none": "var(--bar)"})  # fmt: skip
    spans: Spec = {
        "mark": {"type": "rule", "strokeWidth": 2, "stroke": "var(--ink)"},
        "encoding": {
            "x": {**x, "field": "low"}, "x2": {"field": "high"}, "tooltip": {"field": "tip"},
        },
    }  # fmt: skip
    for each in (bars, spans):
        each["encoding"]["y"] = names(rows)
    zero = {
        "data": {"values": [{"zero": 0}]},
        "mark": {"type": "rule", "stroke": "var(--quiet)"},
        "encoding": {"x": {**x, "field": "zero"}},
    }
    return chart(rows, layer=[bars, zero, spans], height=_BAR * len(rows))
