"""A sweep as a page: what to set for each data set, how settings compare, and every trial."""

from __future__ import annotations

from pipeprof.model import SweepResult
from pipeprof.report import terminal_sweep
from pipeprof.report.data_sets import DataSet, data_sets, own_data_sets
from pipeprof.report.html.kept import kept
from pipeprof.report.html.shapes import (
    Block,
    Chart,
    Column,
    Fact,
    Heading,
    Lines,
    Said,
    Section,
    Table,
    View,
    row,
)
from pipeprof.report.html.sweep_chart import against_workers
from pipeprof.report.html.sweep_trials import (
    emulated,
    fastest,
    label_of,
    trials_section,
    untried_section,
)
from pipeprof.report.html.words import word
from pipeprof.report.layout import opening_word
from pipeprof.report.phrases import settings
from pipeprof.report.terminal_gains import gains_section
from pipeprof.units import (
    format_count,
    format_share,
)


def sweep_view(sweep: SweepResult) -> View:
    found, own = data_sets(sweep), own_data_sets(sweep)
    sections = [_what_to_set(sweep, own), *_converting(sweep)]
    sections += [_settings(sweep, found), trials_section(sweep, found), untried_section(sweep)]
    return View(
        title=", ".join(sweep.spec.urls),
        what="sweep",
        created=sweep.created,
        verdicts=tuple(_verdict(data) for data in own),
        facts=_facts(sweep, found),
        opening=_opening(sweep, found),
        sections=(*sections, _how_sure(sweep)),
        version=sweep.environment.pipeprof,
    )


def _verdict(data: DataSet) -> Said:
    starved = format_share(data.best.starved_fraction)
    so_far = f"best so far, with {settings(data.best.config)}: {starved} of the time."
    headline = data.advice.headline if data.advice else so_far
    return Said(opening_word(data.best), headline, data.label)


def _facts(sweep: SweepResult, found: list[DataSet]) -> tuple[Fact, ...]:
    trials = f"{len(sweep.trials):,} of {sweep.planned:,}"
    left = f"{len(sweep.untried):,} left out" if sweep.untried else "of the grid"
    facts = [Fact("trials", trials, left if sweep.finished else "unfinished")]
    if found:
        best = fastest(sweep)
        what = f"samples, {label_of(best, found)}, {settings(best.config)}"
        facts.append(Fact("fastest", f"{format_count(best.samples_per_s)}/s", what, "best"))
        asked = best.demand_samples_per_s
        facts.append(Fact("asked", f"{format_count(asked)}/s" if asked else "unknown",
                          f"samples, by the accelerator{emulated(sweep)}"))  # fmt: skip
    facts.append(Fact("cache", sweep.spec.cache, "asked for before each trial"))
    return tuple(facts)


def _opening(sweep: SweepResult, found: list[DataSet]) -> tuple[Block, ...]:
    lines = [] if found else ["No trial has ended, so there is nothing to say yet."]
    if not sweep.finished:
        lines.append(
            f"Unfinished: {len(sweep.trials)} of {sweep.planned} trials have run. To go on: "
            "pipeprof sweep --resume FOLDER, with the folder of this sweep's file."
        )
    lines.append(f"The accelerator is {sweep.environment.accelerator or 'unknown'}.")
    return (Lines(tuple(lines)),)


def _what_to_set(sweep: SweepResult, found: list[DataSet]) -> Section:
    return kept(
        "change",
        "What to set",
        lambda page: terminal_sweep.what_to_set(page, sweep, found),
        "Unknown until trials have ended.",
        heads=True,
    )


def _converting(sweep: SweepResult) -> list[Section]:
    """Only where it was asked for."""
    if sweep.conversion is None:
        return []
    title = "What would I gain by converting?"
    return [kept("converting", title, lambda page: gains_section(page, sweep, ""), "")]


def _settings(sweep: SweepResult, found: list[DataSet]) -> Section:
    title = "Throughput over workers"
    if not found:
        return Section("settings", title, "", (Lines(("Unknown until trials have ended.",)),))
    best = fastest(sweep)
    told = (
        f"The fastest is {label_of(best, found)} with {settings(best.config)}: "
        f"{format_count(best.samples_per_s)} samples/s. The figures are in the table of trials."
    )
    picture = Chart("settings", title, told, against_workers(sweep, found))
    blocks: list[Block] = [picture]
    if len(found) > 1:
        blocks += [Heading("Data sets at their best"), _comparison(found)]
    predicted = sweep.untried or any(trial.predicted_samples_per_s for trial in sweep.trials)
    note = f"95 % as lines{'; hollow: predicted' if predicted else ''}; dashed: what is asked"
    return Section("settings", title, note, tuple(blocks))


def _comparison(found: list[DataSet]) -> Table:
    names = (Column(name, word=word(name)) for name in terminal_sweep.COMPARED)
    return Table(
        "Data sets at their best",
        (Column("data set", right=False), *names),
        tuple(row(*cells) for cells in terminal_sweep.compared(found)),
    )


def _how_sure(sweep: SweepResult) -> Section:
    return kept("sure", "How sure", lambda page: terminal_sweep.how_sure(page, sweep), "")
