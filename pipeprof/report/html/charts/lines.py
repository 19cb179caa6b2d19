"""Draw rates over the time of a run, and over the hosts that read."""

from __future__ import annotations

from pipeprof.report.document.charts import OverHosts, OverTime
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


def over_hosts(data: OverHosts) -> Spec:
    """Draw a point for each load, and the fitted line."""
    rows = [
        {"hosts": point.hosts, "rate": point.bytes_per_s, "tip": point.text}
        for point in data.points
    ]
    numbers = sorted({point.hosts for point in data.points})
    axis = {"values": numbers, "labelExpr": "datum.value", "grid": False}
    most = max(*(point.bytes_per_s for point in data.points), *(rate for _, rate in data.line))
    y_axis = {"labelExpr": f"{vega.COUNTS} + 'B/s'", "tickCount": 5}
    place = {
        "x": vega.quantity("hosts", "hosts that read", axis, type="log", base=2, padding=14),
        "y": vega.quantity("rate", None, y_axis, domain=[0, most * 1.1], nice=False),
    }
    line = vega.layer("line", place, stroke="var(--decode)", strokeWidth=2, strokeDash=[6, 3])
    line["data"] = {"values": [{"hosts": hosts, "rate": rate} for hosts, rate in data.line]}
    dot = {**place, "tooltip": vega.TIP}
    points = vega.layer("point", dot, filled=True, size=90, opacity=1, fill="var(--read)")
    return vega.chart(rows, layer=[line, points], height=260)
