"""Turn the data of a chart into a Vega-Lite specification."""

from __future__ import annotations

from pipeprof.report.document import charts as data
from pipeprof.report.html.charts import bars, cells, lines, points, timeline
from pipeprof.report.html.charts.vega import Spec


def spec_of(chart: data.ChartData) -> Spec:
    """Return the specification. User-given names are only values in it, never in expressions."""
    match chart:
        case data.Bars():
            return bars.bars(chart)
        case data.Stacks():
            return bars.stacks(chart)
        case data.StageSpread():
            return points.spread(chart)
        case data.Throughputs():
            return points.throughputs(chart)
        case data.OverWorkers():
            return points.over_workers(chart)
        case data.OverHosts():
            return lines.over_hosts(chart)
        case data.OverTime():
            return lines.over_time(chart)
        case data.Timeline():
            return timeline.timeline(chart)
        case data.ShareMap():
            return cells.cells(chart)
