"""Lines of text: the verdict first, colour only where it means something."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from io import StringIO
from typing import Final, TextIO

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text

from pipeprof.report.document import blocks as doc
from pipeprof.report.terminal.table import NO_BREAK, glued, grid, side_by_side
from pipeprof.report.text import clean, write_text

WIDTH: Final = 100
LEAST_WIDTH: Final = 60
_LABEL: Final = 10
"""Columns that labels take at least, so that short lists of figures align with one another."""
_STYLES: Final[dict[doc.Tone, str]] = {"": "bold", "good": "bold green", "bad": "bold red",
                                   "unsure": "bold yellow"}  # fmt: skip
"""Of a verdict's word."""


def render_terminal(document: doc.Document, *, color: bool = False, width: int = WIDTH) -> str:
    """``document`` in ``width`` columns; only code to paste may be wider."""
    page = _Page(max(width, LEAST_WIDTH), color)
    for section in document.without_charts().sections:
        page.add(section)
    return page.text()


def print_document(document: doc.Document, file: TextIO | None = None) -> None:
    """Write ``document`` to ``file`` (standard output), as what is on the other side can show it.

    Colour only on a terminal and without ``NO_COLOR``; ASCII where the encoding has no more.
    """
    file = sys.stdout if file is None else file
    console = Console(file=file)
    color = console.color_system is not None and not console.no_color
    width = min(console.width, WIDTH) if console.is_terminal else WIDTH
    write_text(render_terminal(document, color=color, width=width), file)


class _Page:
    """Lays sections out one below the other."""

    def __init__(self, width: int, color: bool) -> None:
        # markup, emoji and highlight are off: names of the user's are shown as they are
        self._console = Console(
            file=StringIO(),
            width=width,
            color_system="standard" if color else None,
            force_terminal=color,
            force_jupyter=False,  # or it would display, and not write
            no_color=not color,
            markup=False,
            emoji=False,
            highlight=False,
            legacy_windows=False,
        )
        self._width = width

    def add(self, section: doc.Section) -> None:
        if section.heading:
            heading = Text(overflow="fold").append(glued(section.heading), "bold")
            heading.append(f"  {glued(section.note)}" if section.note else "")
            self._print(heading)
        verdicts = [block for block in section.blocks if isinstance(block, doc.Verdict)]
        if verdicts:
            self._print(_verdicts(verdicts))
            self._print()
        below = 0
        for block in section.blocks:
            below = 0 if isinstance(block, doc.Subheading) else below
            prose = isinstance(block, doc.Paragraph | doc.Footnote)
            self._block(block, below + (0 if prose and not section.heading else 2))
            below = 2 if isinstance(block, doc.Subheading) else below
        self._print()

    def text(self) -> str:
        file = self._console.file
        assert isinstance(file, StringIO)
        lines = [line.rstrip() for line in file.getvalue().replace(NO_BREAK, " ").splitlines()]
        kept = [line for n, line in enumerate(lines) if line or (n and lines[n - 1])]
        return "\n".join(kept).strip("\n") + "\n"

    def _block(self, block: doc.Block, indent: int) -> None:
        if isinstance(block, doc.Paragraph | doc.Footnote | doc.Subheading):
            self._print(Text(glued(block.text), overflow="fold"), indent)
        elif isinstance(block, doc.FigureList):
            self._print(_figures(block), indent)
        elif isinstance(block, doc.Code):
            self._code(block)
        elif isinstance(block, doc.Table):
            for place, part in enumerate(side_by_side(block, self._width - indent)):
                if place:
                    self._print()
                self._print(grid(part), indent)

    def _code(self, code: doc.Code) -> None:
        """From the first column and unwrapped, so that it pastes as it is."""
        self._print()
        for line in code.lines:
            self._console.print(Text(clean(line)), soft_wrap=True)
        self._print()

    def _print(self, what: RenderableType = "", indent: int = 0) -> None:
        self._console.print(Padding(what, (0, 0, 0, indent)))


def _verdicts(verdicts: Sequence[doc.Verdict]) -> RenderableType:
    lines = Grid.grid(padding=(0, 2, 0, 0))
    for verdict in verdicts:
        sentence = Text(overflow="fold").append(clean(verdict.word).upper(), _STYLES[verdict.tone])
        sentence.append(glued(f"{verdict.joint}{verdict.sentence}"))
        lines.add_row(*[clean(verdict.of)] * bool(verdict.of), sentence)
    return lines


def _figures(block: doc.FigureList) -> RenderableType:
    """Labels, and prose that wraps behind them."""
    lines = Grid.grid(padding=(0, 2, 0, 0))
    lines.add_column(no_wrap=True, min_width=_LABEL)
    lines.add_column(overflow="fold")
    for figure in block.figures:
        lines.add_row(clean(figure.label), glued(figure.text))
    return lines
