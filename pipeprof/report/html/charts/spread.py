"""How much stages vary."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor, log10
from sys import float_info
from typing import Final

from pipeprof.report.document.charts import StageSpread
from pipeprof.report.html.charts.vega import (
    SECONDS,
    TIP,
    Datum,
    Spec,
    chart,
    fixed,
    layer,
    names,
    quantity,
)
from pipeprof.units import format_duration

_PERCENTILES: Final = {"p50": "var(--read)", "p95": "var(--decode)", "p99": "var(--collate)"}
_SHAPES: Final = {"p50": "circle", "p95": "diamond", "p99": "square"}


def spread(data: StageSpread) -> Spec:
    """Of each stage p50, p95 and p99, on one scale of powers of ten."""
    rows: list[Datum] = [
        {
            "name": name, "mark": mark, "seconds": value,
            "tip": f"{name}, {mark}: {format_duration(value)}",
        }
        for name, stats in data.stages.items()
        for mark in _PERCENTILES
        if (value := getattr(stats, f"{mark}_s")) > 0
    ]  # fmt: skip
    axis = {"labelExpr": SECONDS, "values": _powers([row["seconds"] for row in rows])}
    title = "per batch, by powers of ten"
    seconds = quantity("seconds", title, axis, type="log", nice=True, padding=8)
    reach = {"x": {"aggregate": "min", **seconds}, "x2": {"aggregate": "max", "field": "seconds"}}
    dot = {
        "x": seconds,
        "shape": fixed("mark", _SHAPES, {"symbolType": "circle"}),
        "color": fixed("mark", _PERCENTILES, {}),
        "tooltip": TIP,
    }
    layers = [
        layer("rule", reach, strokeWidth=2, stroke="var(--line)"),
        layer("point", dot, filled=True, size=70, opacity=1),
    ]
    return chart(rows, layer=layers, encoding={"y": names(rows)}, height=22 * len(data.stages))


def _powers(values: Sequence[float]) -> list[float]:
    """Of ten, from the one below ``values`` to the one above, if there is one."""
    last = min(ceil(log10(max(values))), float_info.max_10_exp)
    return [10.0**n for n in range(floor(log10(min(values))), last + 1)]
