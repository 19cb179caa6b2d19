"""Compare the throughput of settings and of data sets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pipeprof.model import SweepResult
from pipeprof.report.document import blocks as doc
from pipeprof.report.document.charts import OverWorkers, SweepPoint, ThroughputPoint, Throughputs
from pipeprof.report.document.data_sets import DataSet, fastest, label_of
from pipeprof.report.document.wording import count_range, emulated, predicted_rate, settings, times
from pipeprof.report.text import shorten
from pipeprof.units import format_bytes, format_count, format_share

_LONGEST_SERIES = 40
"""Most characters of the name of a series."""


def throughput(sweep: SweepResult, data_sets: Sequence[DataSet]) -> doc.Section:
    """Return the chart of throughput by number of workers."""
    name, title = "settings", "Throughput over workers"
    if not data_sets:
        return doc.section(name, title, "Unknown until trials have ended.")
    best = fastest(sweep)
    text = (
        f"The fastest is {label_of(best, data_sets)} with {settings(best.config)}: "
        f"{format_count(best.samples_per_s)} samples/s."
    )
    predicted = sweep.untried or any(trial.predicted_samples_per_s for trial in sweep.trials)
    hollow = "; hollow: predicted" if predicted else ""
    note = f"lines: 95 % intervals{hollow}; dashed: the accelerator's demand"
    chart = doc.Chart(name, title, text, _data(sweep, data_sets))
    return doc.section(name, title, chart, note=note)


def _data(sweep: SweepResult, data_sets: Sequence[DataSet]) -> OverWorkers | Throughputs:
    """Return points over workers, or a row per trial if only one number of workers was tried."""
    demand = max((trial.demand_samples_per_s or 0.0 for trial in sweep.trials), default=0.0)
    labels = {data.url: data.label for data in data_sets}
    if len({each.config.num_workers for each in sweep.trials}) > 1 or sweep.untried:
        points = (*_measured(sweep, labels), *_untried(sweep, labels))
        return OverWorkers(points, demand or None)
    rows = tuple(
        ThroughputPoint(_series(sweep, labels[trial.url], trial.config.batch_size), "measured",
              trial.samples_per_s, trial.interval)
        for trial in sweep.trials
    )  # fmt: skip
    return Throughputs(rows, demand or None)


def _measured(sweep: SweepResult, labels: dict[str, str]) -> Iterator[SweepPoint]:
    """Yield a point for each trial, and one for its prediction if it has one."""
    trials = [
        (_series(sweep, labels[trial.url], trial.config.batch_size), trial)
        for trial in sweep.trials
    ]
    ascending = sorted(trials, key=lambda each: each[1].samples_per_s)
    highest = {(name, each.config.num_workers): each.samples_per_s for name, each in ascending}
    for series, trial in trials:
        workers, rate = trial.config.num_workers, trial.samples_per_s
        text = f"{series}, {settings(trial.config)}: {format_count(rate)} samples/s"
        measured = f"{text} ({count_range(trial.interval)})"
        best = rate >= highest[series, workers]
        yield SweepPoint(series, workers, rate, measured, trial.interval, best)
        predicted = trial.predicted_samples_per_s
        if predicted is not None:
            text += f"; {format_count(predicted)} predicted"
            yield SweepPoint(series, workers, predicted, text)


def _untried(sweep: SweepResult, labels: dict[str, str]) -> Iterator[SweepPoint]:
    for each in sweep.untried:
        series = _series(sweep, labels.get(each.url, each.url), each.batch_size)
        text = (
            f"{series}, {each.num_workers} workers, prefetch {each.prefetch_factor or 'none'}: "
            f"{predicted_rate(each)} samples/s predicted, not tried"
        )
        yield SweepPoint(series, each.num_workers, each.samples_per_s, text)


def _series(sweep: SweepResult, label: str, batch_size: int | None) -> str:
    """Return the name of a series: the data set, and the batch size if the sweep has several."""
    several = len({trial.config.batch_size for trial in sweep.trials}) > 1
    name = f"{label}, batch {batch_size:,}" if several and batch_size else label
    return shorten(name, _LONGEST_SERIES)


def best_of_each(sweep: SweepResult, data_sets: Sequence[DataSet]) -> doc.Section:
    """Compare the best trials of the data sets; empty if there is only one data set."""
    name, title = "data-sets", "Best trial of each data set"
    if len(data_sets) < 2:
        return doc.section(name, title)
    note = emulated(sweep.environment).strip(" ()")
    return doc.section(name, title, _table(data_sets), doc.Paragraph(choice(data_sets)), note=note)


def _table(data_sets: Sequence[DataSet]) -> doc.Table:
    return doc.Table(
        (doc.Column("data set", "text"), doc.Column("samples/s"), doc.Column("95 %", spare=1),
         doc.Column("against first", spare=2), *doc.columns(("starved", "bytes/sample"))),
        tuple(
            doc.row(
                data.label,
                format_count(data.best.samples_per_s),
                count_range(data.best.interval),
                _multiple(data),
                format_share(data.best.starved_fraction),
                format_bytes(data.best.bytes_per_sample),
            )
            for data in data_sets
        ),
    )  # fmt: skip


def _multiple(data: DataSet) -> str:
    """Return the speed as a multiple of the first data set's: ``"0.87× (0.81–0.93)"``."""
    against = data.advice.against_first if data.advice else None
    return f"{times(against.speed)} ({count_range(against.interval)})" if against else ""


def multiples(data_sets: Sequence[DataSet]) -> str:
    """Say how fast the others are, against the first; empty where that is unknown."""
    words = []
    for data in data_sets[1:]:
        against = data.advice.against_first if data.advice else None
        if against is not None:
            change = "no difference" if against.difference == "none" else against.difference
            low, high = (times(end) for end in against.interval)
            words.append(f"{data.label} {times(against.speed)} (95 %: {low} to {high}, {change})")
    return f"Samples/s against {data_sets[0].label}: {'; '.join(words)}." if words else ""


def choice(data_sets: Sequence[DataSet]) -> str:
    """Say which of several data sets to prefer, as far as the intervals allow."""
    fed = [data for data in data_sets if data.best.verdict == "fed"]
    if len(fed) > 1:
        leanest = min(fed, key=lambda data: data.best.bytes_per_sample)
        names = ", ".join(data.label for data in fed)
        size = format_bytes(leanest.best.bytes_per_sample)
        return f"{names} feed the accelerator; {leanest.label} reads the least, {size} a sample."
    first, second = sorted(data_sets, key=lambda data: -data.best.samples_per_s)[:2]
    if first.best.interval[0] <= second.best.interval[1]:
        return f"{first.label} and {second.label} do not clearly differ: their intervals overlap."
    ratio = times(first.best.samples_per_s / max(second.best.samples_per_s, 1e-9))
    return f"{first.label} is the fastest: {ratio} the samples/s of {second.label}."
