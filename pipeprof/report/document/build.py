"""Build the document of a profile, a sweep or a comparison."""

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
_LONGEST_WORD: Final = 40
"""Most characters of a name or a path on the first screen."""


def full_report(result: Result) -> doc.Document:
    """Return everything that is known of ``result``, whatever names it holds."""
    if isinstance(result, Profile):
        return profile_document(result)
    if isinstance(result, SweepResult):
        return sweep_document(result)
    return comparison_document(result)


def first_screen(result: Profile | SweepResult) -> doc.Document:
    """Return only the answer, short enough for one terminal screen."""
    if isinstance(result, Profile):
        return _shorten_names(profile_first_screen(result))
    return _shorten_names(sweep_first_screen(result))


def _shorten_names(document: doc.Document) -> doc.Document:
    """Cut long names and paths in all sentences, so that they do not add lines."""
    sections = (
        replace(each, blocks=tuple(map(_shorten_in_block, each.blocks)))
        for each in document.sections
    )
    return replace(document, sections=tuple(sections))


def _shorten_in_block(block: doc.Block) -> doc.Block:
    if isinstance(block, doc.Verdict):
        return replace(block, sentence=_shorten_words(block.sentence))
    if isinstance(block, doc.Paragraph | doc.Footnote | doc.Subheading):
        return replace(block, text=_shorten_words(block.text))
    if isinstance(block, doc.FigureList):
        figures = (replace(each, value=_shorten_words(each.value)) for each in block.figures)
        return replace(block, figures=tuple(figures))
    return block


def _shorten_words(text: str) -> str:
    return " ".join(shorten(word, _LONGEST_WORD) for word in text.split())
