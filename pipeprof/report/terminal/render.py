"""Render a document as lines of text for a terminal. Colour only marks good and bad news."""

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
from pipeprof.report.terminal.table import NO_BREAK, glued, grid, split_to_fit
from pipeprof.report.text import clean, write_text

WIDTH: Final = 100
"""Default and greatest width, in columns."""
LEAST_WIDTH: Final = 60
_LABEL: Final = 10
"""Least columns of a label, so that lists of figures align with one another."""
_STYLES: Final[dict[doc.Tone, str]] = {"": "bold", "good": "bold green", "bad": "bold red",
                                   "unsure": "bold yellow"}  # fmt: skip
"""Tone of a verdict → style of its word."""


def render_terminal(document: doc.Document, *, color: bool = False, width: int = WIDTH) -> str:
    """Return ``document`` as text of at most ``width`` columns; only code may be wider."""
    page = _Page(max(width, LEAST_WIDTH), color)
    for section in document.without_charts().sections:
        page.add(section)
    return page.text()


def print_document(document: doc.Document, file: TextIO | None = None) -> None:
    """Write ``document`` to ``file`` or standard output.

    Colour is used only on a terminal without ``NO_COLOR``, ASCII where the encoding needs that.
    """
    file = sys.stdout if file is None else file
    console = Console(file=file)
    color = console.color_system is not None and not console.no_color
    width = min(console.width, WIDTH) if console.is_terminal else WIDTH
    write_text(render_terminal(document, color=color, width=width), file)


class _Page:
    """Lay out sections one below the other."""

    def __init__(self, width: int, color: bool) -> None:
        # markup, emoji and highlight are off: user-given names are shown verbatim
        self._console = Console(
            file=StringIO(),
            width=width,
            color_system="standard" if color else None,
            force_terminal=color,
            force_jupyter=False,  # in Jupyter it would display the text instead of writing it
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
        nested = 0
        for block in section.blocks:
            subheading = isinstance(block, doc.Subheading)
            prose = isinstance(block, doc.Paragraph | doc.Footnote)
            indent = 0 if subheading else nested
            self._block(block, indent + (0 if prose and not section.heading else 2))
            nested = 2 if subheading else nested
        self._print()

    def text(self) -> str:
        """Return the page without trailing spaces and repeated blank lines."""
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
            for place, part in enumerate(split_to_fit(block, self._width - indent)):
                if place:
                    self._print()
                self._print(grid(part), indent)

    def _code(self, code: doc.Code) -> None:
        """Print code unindented and unwrapped, so that it can be pasted."""
        self._print()
        for line in code.lines:
            self._console.print(Text(clean(line)), soft_wrap=True)
        self._print()

    def _print(self, content: RenderableType = "", indent: int = 0) -> None:
        self._console.print(Padding(content, (0, 0, 0, indent)))


def _verdicts(verdicts: Sequence[doc.Verdict]) -> RenderableType:
    lines = Grid.grid(padding=(0, 2, 0, 0))
    for verdict in verdicts:
        sentence = Text(overflow="fold").append(clean(verdict.word).upper(), _STYLES[verdict.tone])
        sentence.append(glued(f"{verdict.joint}{verdict.sentence}"))
        lines.add_row(*[clean(verdict.of)] * bool(verdict.of), sentence)
    return lines


def _figures(block: doc.FigureList) -> RenderableType:
    """Return labels in one column, and text that wraps in the next."""
    lines = Grid.grid(padding=(0, 2, 0, 0))
    lines.add_column(no_wrap=True, min_width=_LABEL)
    lines.add_column(overflow="fold")
    for figure in block.figures:
        lines.add_row(clean(figure.label), glued(figure.text))
    return lines
