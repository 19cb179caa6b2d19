"""The answer of a sweep alone: verdicts, the setting to use, and where the rest is."""

from __future__ import annotations

from pipeprof.model import SweepResult
from pipeprof.report.document.blocks import Block, Document, Note, Paragraph, Section
from pipeprof.report.document.data_sets import own_data_sets
from pipeprof.report.document.sweep.confidence import confidence_in_brief
from pipeprof.report.document.sweep.conversion import advice_lines
from pipeprof.report.document.sweep.recommendation import first_recommendation
from pipeprof.report.document.sweep.throughput import choice
from pipeprof.report.document.sweep.whole import state, verdict
from pipeprof.units import counted

REST = "All trials: pipeprof report FOLDER --full, or as a page: --html OUT."
_FIRST = 3
"""Data sets with a verdict of their own here, and lines on conversion."""


def sweep_first_screen(sweep: SweepResult) -> Document:
    confidence = confidence_in_brief(sweep)
    return Document(
        title=", ".join(sweep.spec.urls),
        subject="sweep",
        created=sweep.created,
        version=sweep.environment.pipeprof,
        sections=(
            Section("verdict", "", tuple(_opening(sweep))),
            _converting(sweep),
            first_recommendation(sweep, own_data_sets(sweep)),
            Section(confidence.name, confidence.heading, (*confidence.blocks, Note(REST))),
        ),
    ).filled()


def _opening(sweep: SweepResult) -> list[Block]:
    found = own_data_sets(sweep)
    best = sorted(found, key=lambda data: -data.best.samples_per_s)[:_FIRST]
    blocks: list[Block] = [verdict(data) for data in found if data in best]
    if len(found) > _FIRST:
        blocks.append(Paragraph(f"The fastest {_FIRST} of {counted(len(found), 'data set')}."))
    if len(found) > 1:
        blocks.append(Paragraph(choice(found)))
    return [*blocks, *state(sweep)]


def _converting(sweep: SweepResult) -> Section:
    lines = advice_lines(sweep.conversion) if sweep.conversion else []
    blocks = tuple(Paragraph(line) for line in lines[:_FIRST])
    return Section("conversion", "What would I gain by converting?", blocks)
