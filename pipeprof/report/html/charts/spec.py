"""From the data of a chart to its picture."""

from __future__ import annotations

from pipeprof.report.document import charts as data
from pipeprof.report.html.charts import bars, lines, points, timeline
from pipeprof.report.html.charts.vega import Spec


def spec_of(found: data.ChartData) -> Spec:
    """In Vega-Lite. Names of the user's are values of its data, never part of an expression."""
    match found:
        case data.Bars():
            return bars.bars(found)
        case data.Stacks():
            return bars.stacks(found)
        case data.StageSpread():
            return points.spread(found)
        case data.Throughputs():
            return points.throughputs(found)
        case data.OverWorkers():
            return points.over_workers(found)
        case data.OverTime():
            return lines.over_time(found)
        case data.Timeline():
            return timeline.timeline(found)
