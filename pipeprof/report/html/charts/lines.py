"""Draw the rate of batches and the share of waiting over the time of a run."""

from __future__ import annotations

from pipeprof.report.document.charts import OverTime
from pipeprof.report.html.charts import vega
from pipeprof.report.html.charts.vega import Spec


def over_time(data: OverTime) -> Spec:
    """Draw one step per part of the run, with the time that the timeline shows shaded."""
    rows = [
        {"at": part.begin_s, "samples": part.samples_per_s, "share": part.wait_share}
        for part in data.parts
    ]
    end_s = data.parts[-1].end_s
    # the step of the last part needs an end point
    rows.append({**rows[-1], "at": end_s})
    axis = {"labelExpr": vega.SECONDS, "tickCount": 6, "grid": False}
    x = vega.quantity("at", None, axis, domain=[0, end_s], nice=False)
    begin, end = data.shaded
    shade = vega.layer("rect", {"x": x, "x2": {"field": "to"}}, fill="var(--line)", fillOpacity=0.6)
    shade["data"] = {"values": [{"at": begin, "to": end}]}
    if data.figure == "samples/s":
        most = max(part.samples_per_s or 0.0 for part in data.parts) * 1.1
        y, drawn = vega.samples("samples", most, ticks=3), {"mark": "line", "stroke": "var(--read)"}
    else:
        y = vega.quantity("share", "waited", {"format": "%", "tickCount": 3}, domain=[0, 1])
        drawn = {"mark": "area", "fill": vega.ACCENT}
    figure = vega.layer(encoding={"x": x, "y": y}, interpolate="step-after", **drawn)
    return vega.chart(rows, layer=[shade, figure], height=90)
