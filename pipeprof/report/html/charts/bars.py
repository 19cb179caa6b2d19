"""Draw bars: single values, and stacks of consecutive parts."""

from __future__ import annotations

from typing import Final

from pipeprof.report.document.charts import Bar, Bars, Stacks
from pipeprof.report.html.charts import vega
from pipeprof.report.html.charts.vega import Datum, Spec
from pipeprof.units import format_duration, format_share

_BAR_STEP: Final = 26
"""Pixels from one bar to the next."""
_MOST_HEIGHT: Final = 600
"""Most pixels in height of a chart of many stacks."""
_TONES: Final = {
    "worst": vega.ACCENT,
    "best": "var(--step)",
    "demand": vega.DEMAND,
    "": "var(--bar)",
}
_PART_COLOURS: Final = {
    **{name: f"var(--{name})" for name in ("fetch", "read", "decode", "transform", "collate",
                                           "transfer", "pin", "reorder", "ready", "step")},
    "rest of fetch": "var(--fetch)",
    "accelerators at work": vega.DEMAND,
    "waiting for the slowest step": "var(--bar)",
    "waiting for data": vega.ACCENT,
}  # fmt: skip


def bars(data: Bars) -> Spec:
    """Draw one bar per value. Bars far above the others are cut off and marked with »."""
    least, most = _range(data)
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
    return vega.chart(rows, layer=layers, height=_BAR_STEP * len(rows))


def _range(data: Bars) -> tuple[float, float]:
    """Return the lowest and the highest value of the axis."""
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
    """Draw one row of parts for each entry."""
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
    colours = {part: _PART_COLOURS.get(part, "var(--fetch)") for part in parts}
    encoding = {
        "x": vega.quantity("value", data.title, {**axis, "tickCount": 5, "grid": False}),
        "y": vega.names(rows),
        "color": vega.fixed("part", colours, legend={}),
        "order": {"field": "place"},
        "tooltip": vega.TIP,
    }
    drawn = vega.layer("bar", encoding, stroke="var(--paper)", strokeWidth=0.5)
    each = min(34, max(10, _MOST_HEIGHT // len(data.rows)))
    return vega.chart(rows, layer=[drawn], height=each * len(data.rows))
