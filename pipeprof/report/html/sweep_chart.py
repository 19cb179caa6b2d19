"""Throughput over workers: each data set a line, predictions hollow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pipeprof.model import SweepResult, Trial
from pipeprof.report.data_sets import DataSet
from pipeprof.report.html.charts import Point, throughput
from pipeprof.report.html.vega import COUNTS, Datum, Spec, chart, rule_at
from pipeprof.report.phrases import count_range, settings, shorten
from pipeprof.units import format_count

_COLOURS: Final = ("read", "decode", "collate", "step", "fetch", "transform", "pin", "transfer")
_SHAPES: Final = ("circle", "square", "diamond", "triangle-up", "cross", "triangle-down")
_NAME: Final = 40
"""Most characters of a name in the legend."""


def against_workers(sweep: SweepResult, found: list[DataSet]) -> Spec:
    """Of a sweep that tried only one number of workers, a row for each data set."""
    if len({each.config.num_workers for each in sweep.trials}) == 1 and not sweep.untried:
        return _side_by_side(sweep, {data.url: data.label for data in found})
    return _lines(sweep, found)


def _side_by_side(sweep: SweepResult, labels: dict[str, str]) -> Spec:
    points: list[Point] = [
        ("measured", _series(sweep, labels, trial), trial.samples_per_s, trial.interval)
        for trial in sweep.trials
    ]
    demand = max((trial.demand_samples_per_s or 0.0 for trial in sweep.trials), default=0.0)
    return throughput(points, demand or None)


def _lines(sweep: SweepResult, found: list[DataSet]) -> Spec:
    data = list(_points(sweep, found))
    series = list(dict.fromkeys(datum["series"] for datum in data))
    demand = max((trial.demand_samples_per_s or 0.0 for trial in sweep.trials), default=0.0)
    most = max([*(datum["high"] for datum in data), demand]) * 1.05 or 1.0
    colours = [f"var(--{_COLOURS[n % len(_COLOURS)]})" for n in range(len(series))]
    shapes = [_SHAPES[n % len(_SHAPES)] for n in range(len(series))]
    legend = {"columns": 1} if len(series) > 1 else None
    colour = {"field": "series", "type": "nominal", "legend": legend,
              "scale": {"domain": series, "range": colours}}  # fmt: skip
    counts = sorted({datum["workers"] for datum in data})
    x = {
        "field": "workers", "type": "quantitative", "title": "workers",
        "axis": {"values": counts, "labelExpr": "datum.value", "grid": False},
        "scale": {"nice": False, "padding": 14},
    }  # fmt: skip
    y = {
        "field": "samples", "type": "quantitative", "title": "samples/s",
        "axis": {"labelExpr": COUNTS, "tickCount": 6},
        "scale": {"domain": [0, most], "nice": False},
    }  # fmt: skip
    measured = [{"filter": "datum.known == 'measured'"}]
    line: Spec = {
        "transform": [*measured, {"filter": "datum.best"}],
        "mark": {"type": "line", "strokeWidth": 2},
        "encoding": {"x": x, "y": y, "color": colour},
    }
    span = {
        "transform": measured,
        "mark": {"type": "rule", "strokeWidth": 2},
        "encoding": {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}, "color": colour},
    }
    shape = {"field": "series", "type": "nominal", "legend": legend,
             "scale": {"domain": series, "range": shapes}}  # fmt: skip
    points = {
        "transform": measured,
        "mark": {"type": "point", "filled": True, "size": 80, "opacity": 1},
        "encoding": {"x": x, "y": y, "color": colour, "shape": shape, "tooltip": {"field": "tip"}},
    }
    hollow = {
        "transform": [{"filter": "datum.known != 'measured'"}],
        "mark": {"type": "point", "filled": False, "size": 80, "strokeWidth": 1.5, "opacity": 0.9},
        "encoding": {"x": x, "y": y, "color": colour, "shape": shape, "tooltip": {"field": "tip"}},
    }
    layers = [line, span, points, hollow, *([rule_at(demand, "y")] if demand else [])]
    return chart(data, layer=layers, height=300)


def _points(sweep: SweepResult, found: list[DataSet]) -> Iterator[Datum]:
    labels = {data.url: data.label for data in found}
    highest: dict[tuple[str, int], float] = {}
    for trial in sweep.trials:
        key = (_series(sweep, labels, trial), trial.config.num_workers)
        highest[key] = max(highest.get(key, 0.0), trial.samples_per_s)
    for trial in sweep.trials:
        series, count = _series(sweep, labels, trial), trial.config.num_workers
        low, high = trial.interval
        tip = f"{series}, {settings(trial.config)}: {format_count(trial.samples_per_s)} samples/s"
        yield {
            "series": series, "workers": count, "samples": trial.samples_per_s,
            "low": low, "high": high, "known": "measured",
            "best": trial.samples_per_s >= highest[series, count],
            "tip": f"{tip} ({count_range(trial.interval)})",
        }  # fmt: skip
        if trial.predicted_samples_per_s is not None:
            told = f"{tip}; {format_count(trial.predicted_samples_per_s)} predicted"
            yield _predicted(series, count, trial.predicted_samples_per_s, told)
    for each in sweep.untried:
        series = shorten(_with_batch(sweep, labels.get(each.url, each.url), each.batch_size), _NAME)
        tip = f"{series}, {each.num_workers} workers, prefetch {each.prefetch_factor or 'none'}: "
        tip += f"{format_count(each.samples_per_s)} samples/s predicted, not tried"
        yield _predicted(series, each.num_workers, each.samples_per_s, tip)


def _predicted(series: str, workers: int, samples: float, tip: str) -> Datum:
    return {"series": series, "workers": workers, "samples": samples, "low": samples,
            "high": samples, "known": "predicted", "best": False, "tip": tip}  # fmt: skip


def _series(sweep: SweepResult, labels: dict[str, str], trial: Trial) -> str:
    label = labels.get(trial.url, trial.format)
    return shorten(_with_batch(sweep, label, trial.config.batch_size), _NAME)


def _with_batch(sweep: SweepResult, label: str, batch_size: int | None) -> str:
    """Only where there are several."""
    several = len({trial.config.batch_size for trial in sweep.trials}) > 1
    return f"{label}, batch {batch_size:,}" if several and batch_size else label
