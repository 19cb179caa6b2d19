"""A sweep: what to set for each data set, how the data sets compare, and every trial."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pipeprof.model import SweepResult
from pipeprof.report.document import blocks as doc
from pipeprof.report.document.data_sets import (
    DataSet,
    data_sets,
    fastest,
    label_of,
    own_data_sets,
)
from pipeprof.report.document.sweep.confidence import confidence, confidence_in_brief
from pipeprof.report.document.sweep.conversion import advice_lines, conversion, cost_of_a_sample
from pipeprof.report.document.sweep.recommendation import first_recommendation, recommendation
from pipeprof.report.document.sweep.throughput import best_of_each, choice, throughput
from pipeprof.report.document.sweep.trials import trials, untried
from pipeprof.report.document.wording import emulated, settings, verdict_of
from pipeprof.units import counted, format_count, format_share

_REST: Final = "All trials: pipeprof report FOLDER --full, or as a page: --html OUT."
_FIRST: Final = 3
"""Data sets with a verdict of their own on the first screen, and lines on conversion."""


def sweep_document(sweep: SweepResult) -> doc.Document:
    found, own = data_sets(sweep), own_data_sets(sweep)
    figures = doc.KeyFigures(_figures(sweep, found))
    return _document(
        sweep,
        doc.section("verdict", "", *map(_verdict, own), *_state(sweep), figures),
        recommendation(sweep, own),
        conversion(sweep),
        cost_of_a_sample(sweep),
        throughput(sweep, found),
        best_of_each(sweep, own),
        trials(sweep, found),
        untried(sweep),
        confidence(sweep),
    )


def sweep_first_screen(sweep: SweepResult) -> doc.Document:
    """Verdicts, the setting to use, and where the rest is."""
    converting = map(doc.Paragraph, advice_lines(sweep.conversion)[:_FIRST])
    return _document(
        sweep,
        doc.section("verdict", "", *_brief_opening(sweep)),
        doc.section("conversion", "What would I gain by converting?", *converting),
        first_recommendation(sweep, own_data_sets(sweep)),
        doc.section("confidence", "Confidence", confidence_in_brief(sweep), _REST),
    )


def _document(sweep: SweepResult, *sections: doc.Section) -> doc.Document:
    version = sweep.environment.pipeprof
    title = ", ".join(sweep.spec.urls)
    return doc.Document(title, "sweep", sections, sweep.created, version).filled()


def _verdict(data: DataSet) -> doc.Verdict:
    starved = format_share(data.best.starved_fraction)
    so_far = f"best so far, with {settings(data.best.config)}: {starved} of the time."
    return verdict_of(data.best, data.advice.headline if data.advice else so_far, data.label)


def _state(sweep: SweepResult) -> list[doc.Paragraph]:
    """Whether the sweep has ended, and what its accelerator is."""
    lines = [] if sweep.trials else ["No trial has ended, so there is nothing to say yet."]
    lines.append(f"The accelerator is {sweep.environment.accelerator or 'unknown'}.")
    if not sweep.finished:
        lines.append(
            f"Unfinished: {len(sweep.trials)} of {sweep.planned} trials have run. To continue: "
            "pipeprof sweep --resume FOLDER, with the folder of this sweep's file."
        )
    return [doc.Paragraph(line) for line in lines]


def _figures(sweep: SweepResult, found: Sequence[DataSet]) -> tuple[doc.LabelledFigure, ...]:
    left = f"{len(sweep.untried):,} left out" if sweep.untried else "of the grid"
    count = f"{len(sweep.trials):,} of {sweep.planned:,}"
    figures = [doc.LabelledFigure("trials", count, left if sweep.finished else "unfinished")]
    if found:
        best = fastest(sweep)
        where = f"{label_of(best, found)}, {settings(best.config)}"
        rate = f"{format_count(best.samples_per_s)} samples/s"
        figures.append(doc.LabelledFigure("fastest", rate, where, "good"))
        asked = best.demand_samples_per_s
        demand = f"{format_count(asked)} samples/s" if asked else "unknown"
        by = f"by the accelerator{emulated(sweep.environment)}"
        figures.append(doc.LabelledFigure("asked", demand, by))
    figures.append(doc.LabelledFigure("cache", sweep.spec.cache, "asked for before each trial"))
    return tuple(figures)


def _brief_opening(sweep: SweepResult) -> list[doc.Block]:
    found = own_data_sets(sweep)
    best = sorted(found, key=lambda data: -data.best.samples_per_s)[:_FIRST]
    blocks: list[doc.Block] = [_verdict(data) for data in found if data in best]
    if len(found) > _FIRST:
        blocks.append(doc.Paragraph(f"The fastest {_FIRST} of {counted(len(found), 'data set')}."))
    if len(found) > 1:
        blocks.append(doc.Paragraph(choice(found)))
    return [*blocks, *_state(sweep)]
