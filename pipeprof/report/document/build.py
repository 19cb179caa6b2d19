"""From a result to its document."""

from __future__ import annotations

from dataclasses import replace
from typing import Final, TypeAlias

from pipeprof.model import Comparison, Profile, SweepResult
from pipeprof.report.document import blocks as doc
from pipeprof.report.document.comparison.document import comparison_document
from pipeprof.report.document.profile.document import profile_document, profile_first_screen
from pipeprof.report.document.sweep.document import sweep_document, sweep_first_screen
from pipeprof.report.text import shorten

Result: TypeAlias = "Profile | SweepResult | Comparison"
_LONGEST: Final = 40
"""Characters of a name or a path on the first screen."""


def full_report(result: Result) -> doc.Document:
    """All that is known. Never fails on a valid ``result``, whatever its names hold."""
    if isinstance(result, Profile):
        return profile_document(result)
    if isinstance(result, SweepResult):
        return sweep_document(result)
    return comparison_document(result)


def first_screen(result: Profile | SweepResult) -> doc.Document:
    """The answer alone, in the height of a terminal."""
    if isinstance(result, Profile):
        return _brief(profile_first_screen(result))
    return _brief(sweep_first_screen(result))


def _brief(document: doc.Document) -> doc.Document:
    """Of few lines, however long the names and paths in its sentences are."""
    sections = (
        replace(each, blocks=tuple(map(_brief_block, each.blocks))) for each in document.sections
    )
    return replace(document, sections=tuple(sections))


def _brief_block(block: doc.Block) -> doc.Block:
    if isinstance(block, doc.Verdict):
        return replace(block, sentence=_short(block.sentence))
    if isinstance(block, doc.Paragraph | doc.Footnote | doc.Subheading):
        return replace(block, text=_short(block.text))
    if isinstance(block, doc.FigureList):
        figures = (replace(each, value=_short(each.value)) for each in block.figures)
        return replace(block, figures=tuple(figures))
    return block


def _short(text: str) -> str:
    return " ".join(shorten(word, _LONGEST) for word in text.split())
