"""Bars: values side by side, and parts that follow one another."""

from __future__ import annotations

from typing import Final

from pipeprof.report.document.charts import Bar, Bars, Stacks
from pipeprof.report.html.charts import vega
from pipeprof.report.html.charts.vega import Datum, Spec
from pipeprof.units import format_duration, format_share

_BAR: Final = 26
"""Pixels from bar to bar."""
_TALLEST: Final = 600
"""Pixels of many rows of stacks."""
_TONES: Final = {
    "worst": vega.ACCENT,
    "best": "var(--step)",
    "demand": vega.DEMAND,
    "": "var(--bar)",
}
_PARTS: Final = {
    **{name: f"var(--{name})" for name in ("fetch", "read", "decode", "transform", "collate",
                                           "transfer", "pin", "reorder", "ready", "step")},
    "rest of fetch": "var(--fetch)",
    "accelerators at work": vega.DEMAND,
    "waiting for the slowest step": "var(--bar)",
    "waiting for data": vega.ACCENT,
}  # fmt: skip


def bars(data: Bars) -> Spec:
    """What is far above the demand, or far above the others, is cut off, and its label says so."""
    least, most = _reach(data)
    rows: list[Datum] = [_row(bar, most) for bar in data.bars]
    axis = {"labelExpr": vega.SECONDS if data.unit == "s" else vega.COUNTS, "tickCount": 5}
    domain = [least, most * 1.4 if least == 0 else most]
    x, y = vega.quantity("value", data.title, axis, domain=domain, nice=False), vega.names(rows)
    drawn = {"x": x, "y": y, "color": vega.fixed("tone", _TONES), "tooltip": vega.TIP}
    span = {"x": {**x, "field": "low"}, "x2": {"field": "high"}, "y": y}
    figure = {"x": {"field": "value", "type": "quantitative"}, "y": y, "text": {"field": "label"}}
    layers = [
        vega.layer("bar", drawn, height={"band": 0.7}, cornerRadiusEnd=2),
        vega.layer("rule", span, "isValid(datum.low)", strokeWidth=2, stroke="var(--ink)"),
        *vega.demand_at(data.demand, "x"),
        vega.layer("text", figure, align="left", dx=5),
    ]
    return vega.chart(rows, layer=layers, height=_BAR * len(rows))


def _reach(data: Bars) -> tuple[float, float]:
    """The least and the most that is drawn."""
    ends = [end for bar in data.bars for end in (bar.interval or (bar.value, bar.value))]
    if min(ends) < 0 or data.unit == "s":
        return (min(ends) * 1.05 if min(ends) < 0 else 0.0), max(*ends, 0.0) * 1.05 or 1.0
    lowest, demand = min(ends), data.demand
    far = max(1.3 * demand, 1.6 * lowest) if demand else 4 * lowest
    return 0.0, (min(far, max(ends)) if far > 0 else max(ends)) or 1.0


def _row(bar: Bar, most: float) -> Datum:
    cut = bar.value > most
    low, high = bar.interval or (None, None)
    return {
        "name": bar.name, "value": min(bar.value, most), "low": low, "high": high, "cut": cut,
        "label": f"{bar.label}{' »' if cut else ''}", "tone": bar.standing, "tip": bar.text,
    }  # fmt: skip


def stacks(data: Stacks) -> Spec:
    """A row of parts for each."""
    write = format_duration if data.unit == "s" else format_share
    rows: list[Datum] = [
        {
            "name": name, "part": part, "value": value, "place": place,
            "tip": f"{name}: {part} {write(value)}",
        }
        for name, parts in data.rows.items()
        for place, (part, value) in enumerate(parts.items())
    ]  # fmt: skip
    parts = dict.fromkeys(row["part"] for row in rows)
    axis = {"labelExpr": vega.SECONDS} if data.unit == "s" else {"format": "%"}
    colours = {part: _PARTS.get(part, "var(--fetch)") for part in parts}
    encoding = {
        "x": vega.quantity("value", data.title, {**axis, "tickCount": 5, "grid": False}),
        "y": vega.names(rows),
        "color": vega.fixed("part", colours, legend={}),
        "order": {"field": "place"},
        "tooltip": vega.TIP,
    }
    drawn = vega.layer("bar", encoding, stroke="var(--paper)", strokeWidth=0.5)
    each = min(34, max(10, _TALLEST // len(data.rows)))
    return vega.chart(rows, layer=[drawn], height=each * len(data.rows))
