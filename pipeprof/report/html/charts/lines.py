"""How fast batches came and how much main waited, over time."""

from __future__ import annotations

from pipeprof.report.document.charts import OverTime
from pipeprof.report.html.charts.vega import ACCENT, COUNTS, SECONDS, Spec, chart


def over_time(data: OverTime) -> Spec:
    """A step for each part of the run; shaded is what the timeline shows."""
    rows = [
        {"at": part.begin_s, "samples": part.samples_per_s, "share": part.wait_share}
        for part in data.parts
    ]
    end_s = data.parts[-1].end_s
    # the last part is as long as any: a step needs its end
    rows.append({**rows[-1], "at": end_s})
    x = {
        "field": "at", "type": "quantitative", "title": None,
        "scale": {"domain": [0, end_s], "nice": False},
        "axis": {"labelExpr": SECONDS, "tickCount": 6, "grid": False},
    }  # fmt: skip
    shade = {
        "data": {"values": [{"at": data.shaded[0], "to": data.shaded[1]}]},
        "mark": {"type": "rect", "fill": "var(--line)", "fillOpacity": 0.6},
        "encoding": {"x": x, "x2": {"field": "to"}},
    }
    mark, y = _rates(data) if data.figure == "samples/s" else _waits()
    drawn = {"mark": {"interpolate": "step-after", **mark}, "encoding": {"x": x, "y": y}}
    return chart(rows, layer=[shade, drawn], height=90)


def _rates(data: OverTime) -> tuple[Spec, Spec]:
    most = max(part.samples_per_s or 0.0 for part in data.parts) * 1.1
    return {"type": "line", "stroke": "var(--read)"}, {
        "field": "samples", "type": "quantitative", "title": "samples/s",
        "scale": {"domain": [0, most], "nice": False},
        "axis": {"labelExpr": COUNTS, "tickCount": 3},
    }  # fmt: skip


def _waits() -> tuple[Spec, Spec]:
    return {"type": "area", "fill": ACCENT}, {
        "field": "share", "type": "quantitative", "title": "waited",
        "scale": {"domain": [0, 1]}, "axis": {"format": "%", "tickCount": 3},
    }  # fmt: skip
