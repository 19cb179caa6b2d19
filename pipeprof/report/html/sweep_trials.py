"""The trials of a sweep, to be sorted, and the settings that were left out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pipeprof.model import SweepResult, Trial
from pipeprof.report.data_sets import DataSet
from pipeprof.report.html.shapes import Cell, Column, Lines, Section, Table, row
from pipeprof.report.html.words import word
from pipeprof.report.phrases import is_emulated
from pipeprof.units import counted, format_bytes, format_count, format_duration, format_share


def fastest(sweep: SweepResult) -> Trial:
    return max(sweep.trials, key=lambda trial: trial.samples_per_s)


def label_of(trial: Trial, found: list[DataSet]) -> str:
    return next((data.label for data in found if data.url == trial.url), trial.format)


def emulated(sweep: SweepResult) -> str:
    return " (emulated)" if is_emulated(sweep.environment.accelerator) else ""


@dataclass(frozen=True)
class _Figure:
    """A column of the trials."""

    title: str
    value: Callable[[Trial], float | None]
    write: Callable[[float], str]
    always: bool = False
    """Else only where it is known of any trial."""


_FIGURES = (
    _Figure("workers", lambda trial: trial.config.num_workers, lambda value: f"{value:.0f}", True),
    _Figure("prefetch", lambda trial: trial.config.prefetch_factor, lambda value: f"{value:.0f}"),
    _Figure("batch", lambda trial: trial.config.batch_size, lambda value: f"{value:,.0f}"),
    _Figure("samples/s", lambda trial: trial.samples_per_s, format_count, True),
    _Figure("95 % ±", lambda trial: _half_width(trial), format_share, True),
    _Figure("predicted", lambda trial: trial.predicted_samples_per_s, format_count),
    _Figure("spread", lambda trial: trial.spread, format_share, True),
    _Figure("starved", lambda trial: trial.starved_fraction, format_share, True),
    _Figure("read a sample", lambda trial: trial.bytes_per_sample, format_bytes, True),
    _Figure("moved a sample", lambda trial: trial.physical_bytes_per_sample, format_bytes),
    _Figure("CPU a sample", lambda trial: trial.cpu_s_per_sample, format_duration),
    _Figure("decode a sample", lambda trial: trial.decode_s_per_sample, format_duration),
)


def trials_section(sweep: SweepResult, found: list[DataSet]) -> Section:
    title = "Trials"
    if not sweep.trials:
        return Section("trials", title, "0 so far", (Lines(("No trial has ended.",)),))
    shown = [f for f in _FIGURES if f.always or any(f.value(t) is not None for t in sweep.trials)]
    to_use = {id(data.best) for data in found}
    most = fastest(sweep)
    columns = [Column("data set", right=False), Column("", right=False)]
    columns += [Column(figure.title, word=word(figure.title)) for figure in shown]
    columns += [Column("verdict", right=False), Column("to blame", right=False),
                Column("cache", right=False), Column("profile", right=False)]  # fmt: skip
    rows = []
    for trial in sweep.trials:
        marks = ["to use"] * (id(trial) in to_use) + ["fastest"] * (trial is most)
        rows.append(
            row(
                label_of(trial, found),
                ", ".join(marks),
                *(_cell(figure, trial) for figure in shown),
                trial.verdict if trial.has_step else "no step",
                Cell(trial.bottleneck or "", word=word(trial.bottleneck or "")),
                trial.cache.state,
                trial.profile,
                tone="best" if marks else "",
            )
        )
    legend = [
        "To use: the cheapest setting that feeds the accelerator, else the fastest of its data.",
        "Read: asked of storage. Moved: by disks, unknown where that cannot be seen.",
        "A trial's profile lies beside this sweep's file.",
    ]
    legend += [f"{data.label}: {data.url}" for data in found if data.url != data.label]
    table = Table(title, tuple(columns), tuple(rows), sortable=True)
    note = f"{len(sweep.trials)}{emulated(sweep)}; sort by a column's title"
    return Section("trials", title, note, (table, Lines(tuple(legend))))


def _cell(figure: _Figure, trial: Trial) -> Cell:
    value = figure.value(trial)
    if value is None:
        return Cell("" if figure.title in ("prefetch", "batch", "predicted") else "unknown")
    return Cell(figure.write(value), sort=float(value))


def _half_width(trial: Trial) -> float | None:
    low, high = trial.interval
    return (high - low) / 2 / trial.samples_per_s if trial.samples_per_s > 0 else None


def untried_section(sweep: SweepResult) -> Section:
    title = "Settings that were not tried"
    if not sweep.untried:
        none = (
            "No setting was left out." if sweep.finished else "Unknown until the sweep has ended."
        )
        return Section("untried", title, "", (Lines((none,)),))
    ordered = sorted(sweep.untried, key=lambda each: -each.samples_per_s)
    titles = ("workers", "prefetch", "batch", "predicted samples/s", "at most")
    table = Table(
        title,
        (Column("data set", right=False), *(Column(name) for name in titles)),
        tuple(
            row(
                each.url,
                Cell(str(each.num_workers), sort=float(each.num_workers)),
                Cell(str(each.prefetch_factor or ""), sort=float(each.prefetch_factor or 0)),
                Cell(f"{each.batch_size:,}" if each.batch_size else "", sort=each.batch_size),
                Cell(format_count(each.samples_per_s), sort=each.samples_per_s),
                Cell(format_count(each.at_most), sort=each.at_most),
            )
            for each in ordered
        ),
        sortable=True,
    )
    count = counted(len(ordered), "setting")
    told = f"{count}: none is predicted to change the answer. At most: in one run, with 95 %."
    return Section("untried", title, "predicted only", (Lines((told,)), table))
