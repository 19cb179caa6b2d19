"""Draw points with intervals: throughputs of settings, runs and workers; percentiles of stages."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from math import ceil, floor, log10
from sys import float_info
from typing import Final

from pipeprof.report.document.charts import OverWorkers, StageSpread, Throughputs
from pipeprof.report.document.wording import count_range
from pipeprof.report.html.charts import vega
from pipeprof.report.html.charts.vega import Datum, Spec
from pipeprof.report.text import shorten
from pipeprof.units import format_count, format_duration

_KNOWN_BY: Final = {"measured": "var(--read)", "predicted": "var(--decode)"}
_COLOURS: Final = ("read", "decode", "collate", "step", "fetch", "transform", "pin", "transfer")
_SHAPES: Final = ("circle", "square", "diamond", "triangle-up", "cross", "triangle-down")
_PERCENTILES: Final = {"p50": "var(--read)", "p95": "var(--decode)", "p99": "var(--collate)"}
_PERCENTILE_SHAPES: Final = {"p50": "circle", "p95": "diamond", "p99": "square"}


def throughputs(data: Throughputs) -> Spec:
    """Draw a point and its interval for each setting or run."""
    rows: list[Datum] = []
    for point in data.points:
        value = point.samples_per_s
        low, high = point.interval or (value or 0.0, value or 0.0)
        label = format_count(value) if value is not None else count_range((low, high))
        rows.append({
            "name": shorten(point.setting, 26), "known by": point.known_by,
            "known": value is not None, "low": low, "high": high,
            "samples": value if value is not None else (low + high) / 2, "label": label,
            "tip": f"{point.setting}, {point.known_by}: {label} samples/s",
        })  # fmt: skip
    most = max([*(row["high"] for row in rows), data.demand or 0.0]) * 1.12
    x, y = vega.samples("samples", most), vega.names(rows)
    span = {"x": vega.samples("low", most), "x2": {"field": "high"}, "y": y, "tooltip": vega.TIP}
    used = {point.known_by for point in data.points}
    colours = {name: colour for name, colour in _KNOWN_BY.items() if name in used}
    shapes = dict(zip(colours, ("circle", "diamond"), strict=False))
    colour, shape = (vega.fixed("known by", signs, {}) for signs in (colours, shapes))
    dot = {"x": x, "y": y, "color": colour, "shape": shape, "tooltip": vega.TIP}
    layers = [
        *vega.demand_at(data.demand, "x"),
        vega.layer("rule", span, strokeWidth=3, stroke="var(--bar)"),
        vega.layer("point", dot, "datum.known", filled=True, size=110, opacity=1),
        vega.layer("text", {"x": x, "y": y, "text": {"field": "label"}}, dy=-12),
    ]
    return vega.chart(rows, layer=layers, height=40 * len({row["name"] for row in rows}))


def over_workers(data: OverWorkers) -> Spec:
    """Draw one line per series of a sweep, with predictions as hollow points."""
    rows: list[Datum] = []
    for point in data.points:
        low, high = point.interval or (point.samples_per_s, point.samples_per_s)
        rows.append({
            "series": point.series, "workers": point.workers, "samples": point.samples_per_s,
            "low": low, "high": high, "known": "measured" if point.interval else "predicted",
            "best": point.best, "tip": point.text,
        })  # fmt: skip
    series = list(dict.fromkeys(row["series"] for row in rows))
    numbers = sorted({row["workers"] for row in rows})
    axis = {"values": numbers, "labelExpr": "datum.value", "grid": False}
    most = max([*(row["high"] for row in rows), data.demand or 0.0]) * 1.05
    y = vega.samples("samples", most, ticks=6)
    legend = {"columns": 1} if len(series) > 1 else None
    colours = dict(zip(series, cycle(f"var(--{name})" for name in _COLOURS)))
    line = {
        "x": vega.quantity("workers", "workers", axis, nice=False, padding=14),
        "y": y,
        "color": vega.fixed("series", colours, legend),
    }
    shapes = dict(zip(series, cycle(_SHAPES)))
    dot = {**line, "shape": vega.fixed("series", shapes, legend), "tooltip": vega.TIP}
    interval = {**line, "y": {**y, "field": "low"}, "y2": {"field": "high"}}
    measured = "datum.known == 'measured'"
    hollow = {"filled": False, "strokeWidth": 1.5, "opacity": 0.9}
    layers = [
        vega.layer("line", line, f"{measured} && datum.best", strokeWidth=2),
        vega.layer("rule", interval, measured, strokeWidth=2),
        vega.layer("point", dot, measured, filled=True, size=80, opacity=1),
        vega.layer("point", dot, f"!({measured})", size=80, **hollow),
        *vega.demand_at(data.demand, "y"),
    ]
    return vega.chart(rows, layer=layers, height=300)


def spread(data: StageSpread) -> Spec:
    """Draw p50, p95 and p99 of each stage on one logarithmic axis."""
    rows: list[Datum] = [
        {
            "name": name, "mark": mark, "seconds": value,
            "tip": f"{name}, {mark}: {format_duration(value)}",
        }
        for name, stats in data.stages.items()
        for mark in _PERCENTILES
        if (value := getattr(stats, f"{mark}_s")) > 0
    ]  # fmt: skip
    axis = {"labelExpr": vega.SECONDS, "values": _powers([row["seconds"] for row in rows])}
    title = "per batch, logarithmic"
    seconds = vega.quantity("seconds", title, axis, type="log", nice=True, padding=8)
    extent = {"x": {"aggregate": "min", **seconds}, "x2": {"aggregate": "max", "field": "seconds"}}
    dot = {
        "x": seconds,
        "shape": vega.fixed("mark", _PERCENTILE_SHAPES, {"symbolType": "circle"}),
        "color": vega.fixed("mark", _PERCENTILES, {}),
        "tooltip": vega.TIP,
    }
    layers = [
        vega.layer("rule", extent, strokeWidth=2, stroke="var(--line)"),
        vega.layer("point", dot, filled=True, size=70, opacity=1),
    ]
    encoding, height = {"y": vega.names(rows)}, 22 * len(data.stages)
    return vega.chart(rows, layer=layers, encoding=encoding, height=height)


def _powers(values: Sequence[float]) -> list[float]:
    """Return the powers of ten from just below ``values`` to just above, if a float holds that."""
    last = min(ceil(log10(max(values))), float_info.max_10_exp)
    return [10.0**n for n in range(floor(log10(min(values))), last + 1)]
