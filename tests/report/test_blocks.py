"""Building blocks of a document leave out what is empty."""

from __future__ import annotations

from pipeprof.report.document.blocks import (
    FigureList,
    Footnote,
    LabelledFigure,
    Paragraph,
    figures,
    section,
)


def test_a_section_holds_what_there_is_and_plain_text_as_a_footnote() -> None:
    found = section("name", "Heading", None, Paragraph("one"), "", "two", figures([]))
    assert found.blocks == (Paragraph("one"), Footnote("two"))


def test_figures_without_a_text_are_left_out() -> None:
    found = figures([("gain", ""), ("why", "it waits")])
    assert found == FigureList((LabelledFigure("why", "it waits"),))
    assert not figures([("gain", "")])
