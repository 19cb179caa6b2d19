"""Present the trials of a sweep, and the settings that were not tried."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pipeprof.model import SweepResult, Trial, Untried
from pipeprof.report.document import blocks as doc
from pipeprof.report.document.data_sets import DataSet, fastest
from pipeprof.report.document.wording import emulated, predicted_rate, signed_percent
from pipeprof.units import counted, format_bytes, format_count, format_duration, format_share


@dataclass(frozen=True)
class _Figure:
    """A column of the table of trials. It is left out if no trial has the figure."""

    title: str
    value: Callable[[Trial], float | None]
    write: Callable[[float], str]
    if_missing: str = "unknown"
    """The text for a trial without the figure."""
    spare: int = 0
    """As `Column.spare`."""


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


def trials(sweep: SweepResult, data_sets: Sequence[DataSet]) -> doc.Section:
    """Return the table of all trials, with the chosen and the fastest ones marked."""
    name, title = "trials", "Trials"
    if not sweep.trials:
        return doc.section(name, title, "No trial has ended yet.", note="0 so far", evidence=True)
    labels = {data.url: data.label for data in data_sets}
    shown = [each for each in _FIGURES if any(each.value(t) is not None for t in sweep.trials)]
    chosen, most = {id(data.best) for data in data_sets}, fastest(sweep)
    rows = []
    for trial in sweep.trials:
        marks = ["chosen"] * (id(trial) in chosen) + ["fastest"] * (trial is most)
        rows.append(_row(trial, labels[trial.url], ", ".join(marks), shown))
    figures = (doc.Column(each.title, spare=each.spare) for each in shown)
    ends = (doc.Column("verdict", "name", 10), doc.Column("cause", "name"),
            doc.Column("cache", "name", 3), doc.Column("profile", "name", 7))  # fmt: skip
    table = doc.Table(
        (doc.Column("data set", "text"), doc.Column("", "name"), *figures, *ends),
        tuple(rows),
        sortable=True,
    )
    note = f"{len(sweep.trials)}{emulated(sweep.environment)}"
    return doc.section(name, title, table, *_legend(sweep, data_sets), note=note, evidence=True)


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
        return doc.Cell(figure.if_missing)
    return doc.Cell(figure.write(value), sort=float(value))


def _half_width(trial: Trial) -> float | None:
    """Return half the width of the 95 % interval as a share of the throughput."""
    low, high = trial.interval
    return (high - low) / 2 / trial.samples_per_s if trial.samples_per_s > 0 else None


def _legend(sweep: SweepResult, data_sets: Sequence[DataSet]) -> list[str]:
    return [
        "Chosen: the cheapest setting that feeds the accelerator, or else the fastest.",
        "Read: bytes requested from storage. Moved: bytes that disks transferred, if known.",
        "Each trial's profile is in the folder of this sweep's file.",
        *(f"{data.label}: {data.url}" for data in data_sets if data.url != data.label),
        *(_cache(sweep, data) for data in data_sets),
        *(text for data in data_sets for text in _prediction_errors(data)),
    ]


def _cache(sweep: SweepResult, data: DataSet) -> str:
    """Say which cache state was requested, which was found, and the chosen trial's evidence."""
    states = Counter(trial.cache.state for trial in data.trials)
    counts = ", ".join(f"{counted(count, 'trial')} {state}" for state, count in states.items())
    best = data.best.cache
    return (
        f"Cache of {data.label}: {sweep.spec.cache} requested, {counts}. Chosen trial: "
        f"{best.state} ({best.evidence})."
    )


def _prediction_errors(data: DataSet) -> list[str]:
    """Say by how much the predictions for ``data`` were off; empty if there were none."""
    errors = [
        signed_percent(trial.predicted_samples_per_s / trial.samples_per_s - 1)
        for trial in data.trials
        if trial.predicted_samples_per_s and trial.samples_per_s > 0
    ]
    return [f"Predictions of {data.label} were off by {', '.join(errors)}."] if errors else []


def untried(sweep: SweepResult) -> doc.Section:
    """Return the predictions for the settings that were not tried."""
    name, title = "untried", "Settings that were not tried"
    if not sweep.untried:
        unknown = "Unknown until the sweep has ended."
        text = "No setting was left out." if sweep.finished else unknown
        return doc.section(name, title, text, evidence=True)
    ordered = sorted(sweep.untried, key=lambda each: -each.samples_per_s)
    titles = doc.columns(("workers", "prefetch", "batch", "predicted samples/s", "at most"))
    table = doc.Table(
        (doc.Column("data set", "text"), *titles), tuple(map(_untried_row, ordered)), sortable=True
    )
    count, grid = len(ordered), len(ordered) + len(sweep.trials)
    text = (
        f"{counted(count, 'setting')} of {grid} not tried: none is predicted to change the answer. "
        "At most: the upper limit for one run (95 %)."
    )
    if any(each.is_range for each in ordered):
        text += " A range instead of a number: only a run of the setting would narrow it."
    return doc.section(name, title, text, table, note="predicted only", evidence=True)


def _untried_row(each: Untried) -> doc.Row:
    return doc.row(
        each.url,
        doc.Cell(str(each.num_workers), sort=float(each.num_workers)),
        doc.Cell(str(each.prefetch_factor or ""), sort=float(each.prefetch_factor or 0)),
        doc.Cell(
            f"{each.batch_size:,}" if each.batch_size else "", sort=float(each.batch_size or 0)
        ),
        doc.Cell(predicted_rate(each), sort=each.samples_per_s),
        doc.Cell(format_count(each.at_most), sort=each.at_most),
    )
