"""Throughputs as dots with their intervals: of settings and runs, and over workers."""

from __future__ import annotations

from typing import Final

from pipeprof.report.document.charts import OverWorkers, Throughputs
from pipeprof.report.document.wording import count_range
from pipeprof.report.html.charts.vega import (
    COUNTS,
    Datum,
    Spec,
    chart,
    fixed,
    names,
    rule_at,
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
    span = {
        "mark": {"type": "rule", "strokeWidth": 3, "stroke": "var(--bar)"},
        "encoding": {"x": samples("low", most), "x2": {"field": "high"}, "y": y,
                     "tooltip": {"field": "tip"}},
    }  # fmt: skip
    seen = {point.known_by for point in data.points}
    colours = {name: colour for name, colour in _KNOWN_BY.items() if name in seen}
    dots = {
        "transform": [{"filter": "datum.known"}],
        "mark": {"type": "point", "filled": True, "size": 110, "opacity": 1},
        "encoding": {
            "x": x, "y": y,
            "color": fixed("known by", colours, legend={}),
            "shape": {"field": "known by", "type": "nominal", "legend": {},
                      "scale": {"domain": list(colours), "range": ["circle", "diamond"]}},
            "tooltip": {"field": "tip"},
        },
    }  # fmt: skip
    labels = {
        "mark": {"type": "text", "dy": -12},
        "encoding": {"x": x, "y": y, "text": {"field": "label"}},
    }
    layers: list[Spec] = [*_demand(data.demand, "x"), span, dots, labels]
    return chart(rows, layer=layers, height=40 * len({row["name"] for row in rows}))


def _demand(demand: float | None, axis: str) -> list[Spec]:
    return [rule_at(demand, axis)] if demand else []


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
    x = {
        "field": "workers", "type": "quantitative", "title": "workers",
        "axis": {"values": sorted({row["workers"] for row in rows}),
                 "labelExpr": "datum.value", "grid": False},
        "scale": {"nice": False, "padding": 14},
    }  # fmt: skip
    most = max([*(row["high"] for row in rows), data.demand or 0.0]) * 1.05 or 1.0
    y = {
        "field": "samples", "type": "quantitative", "title": "samples/s",
        "axis": {"labelExpr": COUNTS, "tickCount": 6},
        "scale": {"domain": [0, most], "nice": False},
    }  # fmt: skip
    colour = _distinguished(series, [f"var(--{name})" for name in _COLOURS])
    both = {"x": x, "y": y, "color": colour}
    dotted = {**both, "shape": _distinguished(series, _SHAPES), "tooltip": {"field": "tip"}}
    measured = [{"filter": "datum.known == 'measured'"}]
    layers: list[Spec] = [
        {
            "transform": [*measured, {"filter": "datum.best"}],
            "mark": {"type": "line", "strokeWidth": 2},
            "encoding": both,
        },
        {
            "transform": measured,
            "mark": {"type": "rule", "strokeWidth": 2},
            "encoding": {**both, "y": {**y, "field": "low"}, "y2": {"field": "high"}},
        },
        {
            "transform": measured,
            "mark": {"type": "point", "filled": True, "size": 80, "opacity": 1},
            "encoding": dotted,
        },
        {
            "transform": [{"filter": "datum.known != 'measured'"}],
            "mark": {"type": "point", "filled": False, "size": 80, "strokeWidth": 1.5,
                     "opacity": 0.9},
            "encoding": dotted,
        },
        *_demand(data.demand, "y"),
    ]  # fmt: skip
    return chart(rows, layer=layers, height=300)


def _distinguished(series: list[str], signs: list[str] | tuple[str, ...]) -> Spec:
    """By colours or shapes; with a legend where there are several."""
    legend = {"columns": 1} if len(series) > 1 else None
    scale = {"domain": series, "range": [signs[n % len(signs)] for n in range(len(series))]}
    return {"field": "series", "type": "nominal", "legend": legend, "scale": scale}
