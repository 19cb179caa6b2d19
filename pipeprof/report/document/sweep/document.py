"""Assemble the document of a sweep: what to set, how the data sets compare, and all trials."""

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
from pipeprof.report.document.sweep.local_cache import local_cache, local_cache_in_brief
from pipeprof.report.document.sweep.recommendation import first_recommendation, recommendation
from pipeprof.report.document.sweep.row_orders import row_orders, row_orders_in_brief
from pipeprof.report.document.sweep.throughput import best_of_each, choice, multiples, throughput
from pipeprof.report.document.sweep.trials import trials, untried
from pipeprof.report.document.wording import is_emulated, settings, verdict_of
from pipeprof.units import counted, format_count, format_share

_FULL_REPORT: Final = "All trials: pipeprof report FOLDER --full; as a web page: --html OUT."
_MOST_LINES: Final = 3
"""Most verdicts, and most lines about conversion, on the first screen."""


def sweep_document(sweep: SweepResult) -> doc.Document:
    """Return the full report of a sweep."""
    all_sets, own = data_sets(sweep), own_data_sets(sweep)
    figures = doc.KeyFigures(_figures(sweep, all_sets))
    return _document(
        sweep,
        doc.section("verdict", "", *map(_verdict, own), *_state(sweep), figures),
        recommendation(sweep, own),
        conversion(sweep),
        local_cache(sweep),
        row_orders(sweep),
        cost_of_a_sample(sweep),
        throughput(sweep, all_sets),
        best_of_each(sweep, own),
        trials(sweep, all_sets),
        untried(sweep),
        confidence(sweep),
    )


def sweep_first_screen(sweep: SweepResult) -> doc.Document:
    """Return the verdicts, the recommended setting, and how to see the full report."""
    converting = map(doc.Paragraph, advice_lines(sweep.conversion)[:_MOST_LINES])
    return _document(
        sweep,
        doc.section("verdict", "", *_brief_opening(sweep)),
        doc.section("conversion", "What would I gain by converting?", *converting),
        first_recommendation(sweep, own_data_sets(sweep)),
        local_cache_in_brief(sweep),
        row_orders_in_brief(sweep),
        doc.section("confidence", "Confidence", confidence_in_brief(sweep), _FULL_REPORT),
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
    """Say what the accelerator is, and how to continue an unfinished sweep."""
    lines = [] if sweep.trials else ["No trial has ended yet."]
    lines.append(f"The accelerator is {sweep.environment.accelerator or 'unknown'}.")
    if not sweep.finished:
        lines.append(
            f"Unfinished: {len(sweep.trials)} of {sweep.planned} trials have run. To continue, run "
            "pipeprof sweep --resume FOLDER with the folder of this sweep's file."
        )
    return [doc.Paragraph(line) for line in lines]


def _figures(sweep: SweepResult, all_sets: Sequence[DataSet]) -> tuple[doc.LabelledFigure, ...]:
    left = f"{len(sweep.untried):,} settings not tried" if sweep.untried else "the whole grid"
    count = f"{len(sweep.trials):,} of {sweep.planned:,}"
    figures = [doc.LabelledFigure("trials", count, left if sweep.finished else "unfinished")]
    if all_sets:
        best = fastest(sweep)
        where = f"{label_of(best, all_sets)}, {settings(best.config)}"
        rate = f"{format_count(best.samples_per_s)} samples/s"
        figures.append(doc.LabelledFigure("fastest", rate, where, "good"))
        rate_s = best.demand_samples_per_s
        demand = f"{format_count(rate_s)} samples/s" if rate_s else "unknown"
        is_sleep = is_emulated(sweep.environment.accelerator)
        accelerator = "the emulated accelerator's" if is_sleep else "the accelerator's"
        figures.append(doc.LabelledFigure("demand", demand, accelerator))
    figures.append(doc.LabelledFigure("cache", sweep.spec.cache, "requested before each trial"))
    return tuple(figures)


def _brief_opening(sweep: SweepResult) -> list[doc.Block]:
    own = own_data_sets(sweep)
    best = sorted(own, key=lambda data: -data.best.samples_per_s)[:_MOST_LINES]
    blocks: list[doc.Block] = [_verdict(data) for data in own if data in best]
    if len(own) > _MOST_LINES:
        shown = f"The fastest {_MOST_LINES} of {counted(len(own), 'data set')}."
        blocks.append(doc.Paragraph(shown))
    if len(own) > 1:
        lines = choice(own), multiples(own)
        blocks += [doc.Paragraph(line) for line in lines if line]
    return [*blocks, *_state(sweep)]
