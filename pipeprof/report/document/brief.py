"""A document whose texts stay short, however long the names and paths in them are."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from pipeprof.report.document.blocks import (
    Block,
    Document,
    Figures,
    Note,
    Paragraph,
    Subheading,
    Verdict,
)
from pipeprof.report.text import shorten

_LONGEST: Final = 40
"""Characters of a word."""


def brief(document: Document) -> Document:
    sections = (replace(each, blocks=tuple(map(_brief, each.blocks))) for each in document.sections)
    return replace(document, sections=tuple(sections))


def _brief(block: Block) -> Block:
    if isinstance(block, Verdict):
        return replace(block, sentence=_short(block.sentence))
    if isinstance(block, Paragraph | Note | Subheading):
        return replace(block, text=_short(block.text))
    if isinstance(block, Figures):
        figures = (replace(each, value=_short(each.value)) for each in block.figures)
        return replace(block, figures=tuple(figures))
    return block


def _short(text: str) -> str:
    return " ".join(shorten(word, _LONGEST) for word in text.split())
