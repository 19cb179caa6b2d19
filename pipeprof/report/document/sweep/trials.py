"""The trials of a sweep, and the settings that were left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pipeprof.model import SweepResult, Trial, Untried
from pipeprof.report.document import blocks as doc
from pipeprof.report.document.data_sets import DataSet, fastest
from pipeprof.report.document.wording import emulated, signed_percent
from pipeprof.units import counted, format_bytes, format_count, format_duration, format_share


@dataclass(frozen=True)
class _Figure:
    """A column of the trials."""

    title: str
    value: Callable[[Trial], float | None]
    write: Callable[[float], str]
    otherwise: str = "unknown"
    """Where a trial has no such figure; the column is left out where no trial has it."""
    spare: int = 0


_FIGURES = (
    _Figure("workers", lambda trial: trial.config.num_workers, lambda value: f"{value:.0f}"),
    _Figure("prefetch", lambda trial: trial.config.prefetch_factor, lambda value: f"{value:.0f}",
            ""),
    _Figure("batch", lambda trial: trial.config.batch_size, lambda value: f"{value:,.0f}", ""),
    _Figure("samples/s", lambda trial: trial.samples_per_s, format_count),
    _Figure("95 % ±", lambda trial: _half_width(trial), format_share, spare=9),
    _Figure("predicted", lambda trial: trial.predicted_samples_per_s, format_count, "", 6),
    _Figure("spread", lambda trial: trial.spread, format_share, spare=8),
    _Figure("starved", lambda trial: trial.starved_fraction, format_share),
    _Figure("read a sample", lambda trial: trial.bytes_per_sample, format_bytes, spare=5),
    _Figure("moved a sample", lambda trial: trial.physical_bytes_per_sample, format_bytes, spare=1),
    _Figure("CPU a sample", lambda trial: trial.cpu_s_per_sample, format_duration, spare=4),
    _Figure("decode a sample", lambda trial: trial.decode_s_per_sample, format_duration, spare=2),
)  # fmt: skip


def trials(sweep: SweepResult, found: Sequence[DataSet]) -> doc.Section:
    name, title = "trials", "Trials"
    if not sweep.trials:
        return doc.section(name, title, "No trial has ended.", note="0 so far", evidence=True)
    labels = {data.url: data.label for data in found}
    shown = [each for each in _FIGURES if any(each.value(t) is not None for t in sweep.trials)]
    to_use, most = {id(data.best) for data in found}, fastest(sweep)
    rows = []
    for trial in sweep.trials:
        marks = ["to use"] * (id(trial) in to_use) + ["fastest"] * (trial is most)
        rows.append(_row(trial, labels[trial.url], ", ".join(marks), shown))
    figures = (doc.Column(each.title, spare=each.spare) for each in shown)
    ends = (doc.Column("verdict", "name", 10), doc.Column("to blame", "name"),
            doc.Column("cache", "name", 3), doc.Column("profile", "name", 7))  # fmt: skip
    table = doc.Table(
        (doc.Column("data set", "text"), doc.Column("", "name"), *figures, *ends),
        tuple(rows),
        sortable=True,
    )
    note = f"{len(sweep.trials)}{emulated(sweep.environment)}"
    return doc.section(name, title, table, *_legend(sweep, found), note=note, evidence=True)


def _row(trial: Trial, label: str, marks: str, shown: Sequence[_Figure]) -> doc.Row:
    return doc.row(
        label,
        marks,
        *(_cell(figure, trial) for figure in shown),
        trial.verdict if trial.has_step else "no step",
        doc.term(trial.bottleneck or ""),
        trial.cache.state,
        trial.profile,
        tone="good" if marks else "",
    )


def _cell(figure: _Figure, trial: Trial) -> doc.Cell:
    value = figure.value(trial)
    if value is None:
        return doc.Cell(figure.otherwise)
    return doc.Cell(figure.write(value), sort=float(value))


def _half_width(trial: Trial) -> float | None:
    low, high = trial.interval
    return (high - low) / 2 / trial.samples_per_s if trial.samples_per_s > 0 else None


def _legend(sweep: SweepResult, found: Sequence[DataSet]) -> list[str]:
    return [
        "To use: the cheapest setting that feeds the accelerator, else the fastest of its data.",
        "Read: asked of storage. Moved: by disks, unknown where that cannot be seen.",
        "A trial's profile is in the folder of this sweep's file.",
        *(f"{data.label}: {data.url}" for data in found if data.url != data.label),
        *(_cache(sweep, data) for data in found),
        *(text for data in found for text in _errors(data)),
    ]


def _cache(sweep: SweepResult, data: DataSet) -> str:
    """What the cache was to be, what it was, and the evidence of the best trial."""
    states = Counter(trial.cache.state for trial in data.trials)
    counts = ", ".join(f"{counted(count, 'trial')} {state}" for state, count in states.items())
    best = data.best.cache
    return (
        f"Cache of {data.label}, {sweep.spec.cache} asked for: {counts}. Of the one to use, "
        f"{best.state}: {best.evidence}."
    )


def _errors(data: DataSet) -> list[str]:
    """By how much its predictions were off."""
    found = [
        signed_percent(trial.predicted_samples_per_s / trial.samples_per_s - 1)
        for trial in data.trials
        if trial.predicted_samples_per_s and trial.samples_per_s > 0
    ]
    return [f"Predictions of {data.label} were off by {', '.join(found)}."] if found else []


def untried(sweep: SweepResult) -> doc.Section:
    name, title = "untried", "Settings that were not tried"
    if not sweep.untried:
        unknown = "Unknown until the sweep has ended."
        text = "No setting was left out." if sweep.finished else unknown
        return doc.section(name, title, text, evidence=True)
    ordered = sorted(sweep.untried, key=lambda each: -each.samples_per_s)
    titles = doc.columns(("workers", "prefetch", "batch", "predicted samples/s", "at most"))
    table = doc.Table(
        (doc.Column("data set", "text"), *titles), tuple(map(_left_out, ordered)), sortable=True
    )
    count, grid = len(ordered), len(ordered) + len(sweep.trials)
    text = (
        f"{counted(count, 'setting')} of {grid} not tried: none is predicted to change the answer. "
        "At most: in one run, with 95 %."
    )
    return doc.section(name, title, text, table, note="predicted only", evidence=True)


def _left_out(each: Untried) -> doc.Row:
    return doc.row(
        each.url,
        doc.Cell(str(each.num_workers), sort=float(each.num_workers)),
        doc.Cell(str(each.prefetch_factor or ""), sort=float(each.prefetch_factor or 0)),
        doc.Cell(
            f"{each.batch_size:,}" if each.batch_size else "", sort=float(each.batch_size or 0)
        ),
        doc.Cell(format_count(each.samples_per_s), sort=each.samples_per_s),
        doc.Cell(format_count(each.at_most), sort=each.at_most),
    )
