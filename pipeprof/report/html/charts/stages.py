"""Shares and lengths of stages: of a batch's journey, of each worker, of a cluster's time."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor, log10
from sys import float_info
from typing import Final

from pipeprof.report.document.charts import (
    ClusterTime,
    StageShares,
    StageSpread,
    WorkerStages,
)
from pipeprof.report.html.charts.vega import (
    ACCENT,
    DEMAND,
    SECONDS,
    Datum,
    Spec,
    chart,
    fixed,
    names,
)
from pipeprof.units import format_duration, format_share

_COLOURS: Final = {
    name: f"var(--{name})"
    for name in ("fetch", "read", "decode", "transform", "collate", "transfer", "pin", "reorder",
                 "ready", "step")
}  # fmt: skip
_PERCENTILES: Final = {"p50": "var(--read)", "p95": "var(--decode)", "p99": "var(--collate)"}
_CLUSTER: Final = (DEMAND, "var(--bar)", ACCENT)
_PHONE: Final = 330
"""Pixels across on the narrowest screen; what is written on a chart must fit there."""


def shares(data: StageShares) -> Spec:
    """One bar: how a batch's journey is shared out among its stages."""
    whole = sum(data.parts.values())
    rows: list[Datum] = []
    begin = 0.0
    for name, seconds in data.parts.items():
        share = seconds / whole
        rows.append({
            "stage": name, "begin": begin, "end": begin + share, "middle": begin + share / 2,
            "label": name if share * _PHONE >= 7 * len(name) else "",
            "tip": f"{name}: {format_share(share)} of the journey, {format_duration(seconds)}",
        })  # fmt: skip
        begin += share
    x = {
        "field": "begin", "type": "quantitative", "title": "share of a batch's journey",
        "scale": {"domain": [0, 1]}, "axis": {"format": "%", "grid": False, "tickCount": 5},
    }  # fmt: skip
    bars = {
        "mark": {"type": "rect", "stroke": "var(--paper)", "strokeWidth": 1},
        "encoding": {
            "x": x, "x2": {"field": "end"}, "y": {"value": 16}, "y2": {"value": 52},
            "color": _coloured(list(data.parts), "var(--fetch)"),
            "tooltip": {"field": "tip"},
        },
    }  # fmt: skip
    labels = {
        "mark": {"type": "text", "baseline": "bottom"},
        "encoding": {"x": {**x, "field": "middle"}, "y": {"value": 13}, "text": {"field": "label"}},
    }
    return chart(rows, layer=[bars, labels], height=52)


def _coloured(stages: Sequence[str], otherwise: str) -> Spec:
    colours = {name: _COLOURS.get(name, otherwise) for name in stages}
    return fixed("stage", colours, legend={"symbolStrokeWidth": 0})


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


def workers(data: WorkerStages) -> Spec:
    """A column for each worker: its stages' means, on one another."""
    rows: list[Datum] = [
        {
            "worker": who, "stage": name, "seconds": seconds, "order": order,
            "tip": f"{who}: {name} {format_duration(seconds)} of a batch",
        }
        for who, stages in data.workers.items()
        for order, (name, seconds) in enumerate(stages.items())
    ]  # fmt: skip
    known = [name for name in data.order if any(row["stage"] == name for row in rows)]
    bars = {
        "mark": {"type": "bar", "stroke": "var(--paper)", "strokeWidth": 0.5},
        "encoding": {
            "x": {
                "field": "worker", "type": "ordinal", "title": "worker", "sort": None,
                "axis": {"labelAngle": 0, "labelOverlap": True}, "scale": {"paddingInner": 0.2},
            },
            "y": {
                "field": "seconds", "type": "quantitative", "title": "mean per batch",
                "axis": {"labelExpr": SECONDS, "tickCount": 5},
            },
            "order": {"field": "order"},
            "color": _coloured(known, "var(--transfer)"),
            "tooltip": {"field": "tip"},
        },
    }  # fmt: skip
    return chart(rows, layer=[bars], height=200)


def cluster(data: ClusterTime) -> Spec:
    """A bar for each number of accelerators: what their time goes into."""
    rows: list[Datum] = [
        {
            "gpus": gpus, "part": part, "share": share, "place": place,
            "tip": f"{gpus}: {format_share(share)} {part}",
        }
        for gpus, parts in data.clusters.items()
        for place, (part, share) in enumerate(parts.items())
    ]  # fmt: skip
    parts = dict.fromkeys(row["part"] for row in rows)
    bars = {
        "mark": {"type": "bar"},
        "encoding": {
            "y": names(rows, "gpus"),
            "x": {"field": "share", "type": "quantitative", "title": "share of their time",
                  "scale": {"domain": [0, 1]}, "axis": {"format": "%", "tickCount": 5}},
            "color": fixed("part", dict(zip(parts, _CLUSTER, strict=True)), legend={"columns": 1}),
            "order": {"field": "place"},
            "tooltip": {"field": "tip"},
        },
    }  # fmt: skip
    return chart(rows, layer=[bars], height=34 * len(data.clusters))
