"""The charts of a profile. Each takes figures and gives a picture; words stand beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, floor, log10
from sys import float_info
from typing import Final

from pipeprof.model import StageStats
from pipeprof.report.html.vega import (
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
from pipeprof.report.journey import Row
from pipeprof.report.phrases import count_range, shorten, times
from pipeprof.units import format_count, format_duration, format_share

_COLOURS: Final = {
    "fetch": "var(--fetch)",
    "read": "var(--read)",
    "decode": "var(--decode)",
    "transform": "var(--transform)",
    "collate": "var(--collate)",
    "transfer": "var(--transfer)",
    "pin": "var(--pin)",
    "reorder": "var(--reorder)",
    "ready": "var(--ready)",
    "step": "var(--step)",
}
_PERCENTILES: Final = {"p50": "var(--read)", "p95": "var(--decode)", "p99": "var(--collate)"}
REST: Final = "rest of fetch"
FIRST: Final = ("read", "decode", "transform", REST)
"""The parts of a fetch, in the order in which they are drawn."""
KNOWN_BY: Final = {"measured": "var(--read)", "predicted": "var(--decode)"}
_PHONE: Final = 330
"""Pixels across on the narrowest screen; what is written on a chart must fit there."""
_BAR: Final = 22
"""Pixels from bar to bar."""


def roofline(ceilings: Mapping[str, float], demand: float | None) -> Spec:
    """A bar for each ceiling (samples/s), against what the accelerator asks. What is far above is
    cut off, and its figure says so."""
    ordered = sorted(ceilings.items(), key=lambda item: item[1])
    lowest, highest = ordered[0][1], ordered[-1][1]
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
        for name, value in ordered
    ]  # fmt: skip
    bars: Spec = {
        "mark": {"type": "bar", "height": {"band": 0.7}, "cornerRadiusEnd": 2},
        "encoding": {
            "x": samples("samples", far * 1.4),  # room for a figure on a phone
            "color": fixed("tone", {"lowest": ACCENT, "demand": DEMAND, "other": "var(--bar)"}),
            "tooltip": {"field": "tip"},
        },
    }
    labels = labels_beside("samples")
    for each in (bars, labels):
        each["encoding"]["y"] = names(rows)
    layers = [bars, *([rule_at(demand, "x")] if demand else []), labels]
    return chart(rows, layer=layers, height=(_BAR + 6) * len(rows))


def _tone(name: str, lowest: bool) -> str:
    """A lowest ceiling that is the accelerator's own holds nothing up."""
    if name == "accelerator":
        return "demand"
    return "lowest" if lowest else "other"


def way(rows: Sequence[Row]) -> Spec | None:
    """One bar: how a batch's way is shared out among its stages."""
    parts = segments(rows)
    whole = sum(parts.values())
    if whole <= 0:
        return None
    data: list[Datum] = []
    begin = 0.0
    for name, seconds in parts.items():
        share = seconds / whole
        data.append({
            "stage": name, "begin": begin, "end": begin + share, "middle": begin + share / 2,
            "label": name if share * _PHONE >= 7 * len(name) else "",
            "tip": f"{name}: {format_share(share)} of the way, {format_duration(seconds)}",
        })  # fmt: skip
        begin += share
    known = {name: _COLOURS.get(name, "var(--fetch)") for name in parts}
    x = {
        "field": "begin", "type": "quantitative", "title": "share of a batch's way",
        "scale": {"domain": [0, 1]}, "axis": {"format": "%", "grid": False, "tickCount": 5},
    }  # fmt: skip
    bars = {
        "mark": {"type": "rect", "stroke": "var(--paper)", "strokeWidth": 1},
        "encoding": {
            "x": x, "x2": {"field": "end"}, "y": {"value": 16}, "y2": {"value": 52},
            "color": fixed("stage", known, legend={"symbolStrokeWidth": 0}),
            "tooltip": {"field": "tip"},
        },
    }  # fmt: skip
    labels = {
        "mark": {"type": "text", "baseline": "bottom"},
        "encoding": {"x": {**x, "field": "middle"}, "y": {"value": 13}, "text": {"field": "label"}},
    }
    return chart(data, layer=[bars, labels], height=52)


def segments(rows: Sequence[Row]) -> dict[str, float]:
    """Seconds of each part of the way, on average, nothing twice: of `fetch` its parts and the
    rest. Empty where it is not known how long batches were in the making."""
    shared = [row for row in rows if row.share is not None]
    inner = FIRST[:-1]
    parts: dict[str, float] = {}
    for row in shared:
        if row.name == "fetch":
            within = sum(r.stats.total_s for r in shared if r.nested and r.name in inner)
            rest = row.stats.total_s - within
            parts["fetch" if not within else REST] = max(rest, 0.0)
        elif not row.nested or row.name in inner:
            parts[row.name] = row.stats.total_s
    batches = max((row.stats.count for row in shared), default=1)
    first = {name: parts[name] for name in FIRST if parts.get(name)}
    return {name: s / max(batches, 1) for name, s in {**first, **parts}.items() if s > 0}


def percentiles(stages: Mapping[str, StageStats]) -> Spec | None:
    """Of each stage p50, p95 and p99, on one scale of powers of ten."""
    marks = list(_PERCENTILES)
    data: list[Datum] = [
        {
            "name": name, "mark": mark, "seconds": value,
            "tip": f"{name}, {mark}: {format_duration(value)}",
        }
        for name, stats in stages.items()
        if stats.source != "unknown"
        for mark in marks
        if (value := getattr(stats, f"{mark}_s")) > 0
    ]  # fmt: skip
    if not data:
        return None
    seconds = {
        "field": "seconds", "type": "quantitative", "title": "per batch, by powers of ten",
        "scale": {"type": "log", "nice": True, "padding": 8},
        "axis": {"labelExpr": SECONDS, "values": _powers([d["seconds"] for d in data])},
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
    count = len({datum["name"] for datum in data})
    return chart(data, layer=[reach, dots], encoding={"y": names(data)}, height=_BAR * count)


def _powers(values: Sequence[float]) -> list[float]:
    """Of ten, from the one below ``values`` to the one above, if there is one."""
    last = min(ceil(log10(max(values))), float_info.max_10_exp)
    return [10.0**n for n in range(floor(log10(min(values))), last + 1)]


def blame(charged: Mapping[str, float], stall_s: float) -> Spec:
    """A bar for what each stall was charged to, the most in the accent colour."""
    ordered = sorted(charged.items(), key=lambda item: -item[1])
    data: list[Datum] = [
        {
            "name": name, "seconds": seconds, "tone": "most" if not place else "other",
            "label": f"{format_duration(seconds)}, {format_share(seconds / stall_s)}",
            "tip": f"{name}: {format_duration(seconds)}, {format_share(seconds / stall_s)} of "
            "the stall",
        }
        for place, (name, seconds) in enumerate(ordered)
    ]  # fmt: skip
    seconds_ = {
        "field": "seconds", "type": "quantitative", "title": "stall charged to it",
        "scale": {"domain": [0, ordered[0][1] * 1.4 or 1]},
        "axis": {"labelExpr": SECONDS, "tickCount": 5},
    }  # fmt: skip
    bars = {
        "mark": {"type": "bar", "height": {"band": 0.7}, "cornerRadiusEnd": 2},
        "encoding": {
            "x": seconds_,
            "color": fixed("tone", {"most": ACCENT, "other": "var(--bar)"}),
            "tooltip": {"field": "tip"},
        },
    }
    layers = [bars, labels_beside("seconds")]
    return chart(data, layer=layers, encoding={"y": names(data)}, height=(_BAR + 4) * len(data))


def workers(data: Sequence[Datum], stages: Sequence[str]) -> Spec:
    """A column for each worker: its stages' means, on one another. ``data``: ``worker``, ``stage``,
    ``seconds``."""
    known = {name: _COLOURS.get(name, "var(--transfer)") for name in stages}
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
            "color": fixed("stage", known, legend={"symbolStrokeWidth": 0}),
            "tooltip": {"field": "tip"},
        },
    }  # fmt: skip
    return chart([*data], layer=[bars], height=200)


Point = tuple[str, str, "float | None", "tuple[float, float] | None"]
"""How it is known, setting, samples/s, and the interval of that; ``None``: unknown. What is open
has an interval alone."""


def throughput(points: Sequence[Point], demand: float | None) -> Spec:
    """A dot and its interval for each."""
    data: list[Datum] = []
    for known_by, setting, value, interval in points:
        low, high = interval or (value or 0.0, value or 0.0)
        label = format_count(value) if value is not None else f"open: {count_range((low, high))}"
        data.append({
            "name": shorten(setting, 26), "known by": known_by, "known": value is not None,
            "samples": value if value is not None else (low + high) / 2, "low": low, "high": high,
            "label": label, "tip": f"{setting}, {known_by}: {label} samples/s",
        })  # fmt: skip
    most = max([*(datum["high"] for datum in data), demand or 0.0]) * 1.12
    x = samples("samples", most)
    y = names(data)
    span = {
        "mark": {"type": "rule", "strokeWidth": 3, "stroke": "var(--bar)"},
        "encoding": {"x": samples("low", most), "x2": {"field": "high"}, "y": y,
                     "tooltip": {"field": "tip"}},
    }  # fmt: skip
    known = {name: KNOWN_BY[name] for name in KNOWN_BY if any(p[0] == name for p in points)}
    dots = {
        "transform": [{"filter": "datum.known"}],
        "mark": {"type": "point", "filled": True, "size": 110, "opacity": 1},
        "encoding": {
            "x": x, "y": y,
            "color": fixed("known by", known, legend={}),
            "shape": {"field": "known by", "type": "nominal", "legend": {},
                      "scale": {"domain": list(known), "range": ["circle", "diamond"]}},
            "tooltip": {"field": "tip"},
        },
    }  # fmt: skip
    labels = {
        "mark": {"type": "text", "dy": -12},
        "encoding": {"x": x, "y": y, "text": {"field": "label"}},
    }
    layers: list[Spec] = [*([rule_at(demand, "x")] if demand else []), span, dots, labels]
    return chart(data, layer=layers, height=40 * len({datum["name"] for datum in data}))
