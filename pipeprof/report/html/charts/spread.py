"""How much stages vary."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor, log10
from sys import float_info
from typing import Final

from pipeprof.report.document.charts import StageSpread
from pipeprof.report.html.charts.vega import SECONDS, Datum, Spec, chart, fixed, names
from pipeprof.units import format_duration

_PERCENTILES: Final = {"p50": "var(--read)", "p95": "var(--decode)", "p99": "var(--collate)"}


def spread(data: StageSpread) -> Spec:
    """Of each stage p50, p95 and p99, on one scale of powers of ten."""
    marks = list(_PERCENTILES)
    rows: list[Datum] = [
        {
            "name": name, "mark": mark, "seconds": value,
            "tip": f"{name}, {mark}: {format_duration(value)}",
        }
        for name, stats in data.stages.items()
        for mark in marks
        if (value := getattr(stats, f"{mark}_s")) > 0
    ]  # fmt: skip
    seconds = {
        "field": "seconds", "type": "quantitative", "title": "per batch, by powers of ten",
        "scale": {"type": "log", "nice": True, "padding": 8},
        "axis": {"labelExpr": SECONDS, "values": _powers([row["seconds"] for row in rows])},
    }  # fmt: skip
    reach = {
        "mark": {"type": "rule", "strokeWidth": 2, "stroke": "var(--line)"},
        "encoding": {
            "x": {"aggregate": "min", **seconds},
            "x2": {"aggregate": "max", "field": "seconds"},
        },
    }
    dots = {
        "mark": {"type": "point", "filled": True, "size": 70, "opacity": 1},
        "encoding": {
            "x": seconds,
            "shape": {
                "field": "mark", "type": "nominal",
                "scale": {"domain": marks, "range": ["circle", "diamond", "square"]},
                "legend": {"symbolType": "circle"},
            },
            "color": fixed("mark", _PERCENTILES, legend={}),
            "tooltip": {"field": "tip"},
        },
    }  # fmt: skip
    encoding = {"y": names(rows)}
    return chart(rows, layer=[reach, dots], encoding=encoding, height=22 * len(data.stages))


def _powers(values: Sequence[float]) -> list[float]:
    """Of ten, from the one below ``values`` to the one above, if there is one."""
    last = min(ceil(log10(max(values))), float_info.max_10_exp)
    return [10.0**n for n in range(floor(log10(min(values))), last + 1)]
