"""Throughputs as dots with their intervals: of settings and runs, and over workers."""

from __future__ import annotations

from itertools import cycle
from typing import Final

from pipeprof.report.document.charts import OverWorkers, Throughputs
from pipeprof.report.document.wording import count_range
from pipeprof.report.html.charts.vega import (
    TIP,
    Datum,
    Spec,
    chart,
    demand_at,
    fixed,
    layer,
    names,
    quantity,
    samples,
)
from pipeprof.report.text import shorten
from pipeprof.units import format_count

_KNOWN_BY: Final = {"measured": "var(--read)", "predicted": "var(--decode)"}
_COLOURS: Final = ("read", "decode", "collate", "step", "fetch", "transform", "pin", "transfer")
_SHAPES: Final = ("circle", "square", "diamond", "triangle-up", "cross", "triangle-down")


def throughputs(data: Throughputs) -> Spec:
    """A dot and its interval for each."""
    rows: list[Datum] = []
    for point in data.points:
        value = point.samples_per_s
        low, high = point.interval or (value or 0.0, value or 0.0)
        label = format_count(value) if value is not None else f"open: {count_range((low, high))}"
        rows.append({
            "name": shorten(point.setting, 26), "known by": point.known_by,
            "known": value is not None, "low": low, "high": high,
            "samples": value if value is not None else (low + high) / 2, "label": label,
            "tip": f"{point.setting}, {point.known_by}: {label} samples/s",
        })  # fmt: skip
    most = max([*(row["high"] for row in rows), data.demand or 0.0]) * 1.12
    x, y = samples("samples", most), names(rows)
    span = {"x": samples("low", most), "x2": {"field": "high"}, "y": y, "tooltip": TIP}
    used = {point.known_by for point in data.points}
    colours = {name: colour for name, colour in _KNOWN_BY.items() if name in used}
    shapes = dict(zip(colours, ("circle", "diamond"), strict=False))
    signs = {"color": fixed("known by", colours, {}), "shape": fixed("known by", shapes, {})}
    layers = [
        *demand_at(data.demand, "x"),
        layer("rule", span, strokeWidth=3, stroke="var(--bar)"),
        layer("point", {"x": x, "y": y, **signs, "tooltip": TIP}, "datum.known",
              filled=True, size=110, opacity=1),
        layer("text", {"x": x, "y": y, "text": {"field": "label"}}, dy=-12),
    ]  # fmt: skip
    return chart(rows, layer=layers, height=40 * len({row["name"] for row in rows}))


def over_workers(data: OverWorkers) -> Spec:
    """Each series a line; predictions hollow."""
    rows: list[Datum] = [
        {
            "series": point.series, "workers": point.workers, "samples": point.samples_per_s,
            "low": point.interval[0], "high": point.interval[1], "known": point.known_by,
            "best": point.best, "tip": point.text,
        }
        for point in data.points
    ]  # fmt: skip
    series = list(dict.fromkeys(row["series"] for row in rows))
    numbers = sorted({row["workers"] for row in rows})
    axis = {"values": numbers, "labelExpr": "datum.value", "grid": False}
    most = max([*(row["high"] for row in rows), data.demand or 0.0]) * 1.05
    y = samples("samples", most, ticks=6)
    legend = {"columns": 1} if len(series) > 1 else None
    colours = dict(zip(series, cycle(f"var(--{name})" for name in _COLOURS)))
    line = {
        "x": quantity("workers", "workers", axis, nice=False, padding=14),
        "y": y,
        "color": fixed("series", colours, legend),
    }
    shapes = dict(zip(series, cycle(_SHAPES)))
    dot = {**line, "shape": fixed("series", shapes, legend), "tooltip": TIP}
    interval = {**line, "y": {**y, "field": "low"}, "y2": {"field": "high"}}
    measured = "datum.known == 'measured'"
    layers = [
        layer("line", line, f"{measured} && datum.best", strokeWidth=2),
        layer("rule", interval, measured, strokeWidth=2),
        layer("point", dot, measured, filled=True, size=80, opacity=1),
        layer("point", dot, f"!({measured})", filled=False, size=80, strokeWidth=1.5, opacity=0.9),
        *demand_at(data.demand, "y"),
    ]
    return chart(rows, layer=layers, height=300)
