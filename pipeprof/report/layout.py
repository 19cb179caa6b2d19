"""The few shapes that a plain report is made of, laid out to one width by rich."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from io import StringIO
from typing import Literal, TypeAlias

from rich.cells import cell_len
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from pipeprof.model import Diagnosis, Trial, Verdict

Word: TypeAlias = (
    Verdict | Literal["no training step", "slower", "faster", "no difference", "too little to tell"]
)
"""That a report opens with."""

VERDICT_STYLE: dict[Word, str] = {
    "starved": "bold red",
    "fed": "bold green",
    "inconclusive": "bold yellow",
    "no training step": "bold",
    "slower": "bold red",
    "faster": "bold green",
    "no difference": "bold",
    "too little to tell": "bold yellow",
}
WORST_STYLE = "red"
_WRAPPED = 20
"""Columns that prose needs, so that it does not become a word a line."""

_UNIT = re.compile(r"(?<=\d) (?=%|(?:[nµm]?s|[kMGTPE]?i?B(?:/s)?)(?!\w))")
_GLUE = "\uf8ff"
"""For the space between a figure and its unit, where no line breaks; `clean` lets none in."""
_LINE_BREAKS = re.compile(r"[^\S ]+")
_ASCII = str.maketrans(
    {
        "█": "#",
        "▌": "-",
        "·": "|",
        "–": "-",
        "→": "->",
        "×": "x",
        "µ": "u",
        "μ": "u",
        "…": "...",
        "−": "-",
        "⌈": "ceil(",
        "⌉": ")",
        "√": "sqrt",
        "²": "^2",
        "↳": "-",
        "≥": ">=",
        "≤": "<=",
    }
)


@dataclass(frozen=True)
class Column:
    """A column of a `Page.table`."""

    title: str = ""
    right: bool = True
    """Figures stand to the right, names to the left."""
    wraps: bool = False
    spare: int = 0
    """May go where the page is too narrow: 1 goes first, then 2; 0 stays."""


class Page:
    """Collects a report from top to bottom; `text` hands it over."""

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
        self.width = width

    def gap(self) -> None:
        self._console.print()

    def heading(self, title: str, note: str = "") -> None:
        """``title``, and what the reader must know to read what follows."""
        line = Text(overflow="fold").append(_glued(title), "bold")
        if note:
            line.append(f"  {_glued(note)}")
        self.gap()
        self._console.print(line)

    def line(self, text: str, indent: int = 2) -> None:
        """Prose, wrapped."""
        self._console.print(Padding(Text(_glued(text), overflow="fold"), (0, 0, 0, indent)))

    def verdict(self, verdict: Word, headline: str, of: str = "") -> None:
        """The headline, which opens with its verdict, made to stand out; ``of`` what it is."""
        sentence = Text(overflow="fold").append(verdict.upper(), VERDICT_STYLE[verdict])
        sentence.append(_glued(after_verdict(headline, verdict)))
        grid = Table.grid(padding=(0, 2, 0, 0))
        if of:
            grid.add_row(clean(of), sentence)
        else:
            grid.add_row(sentence)
        self._console.print(grid)

    def pairs(self, rows: Iterable[tuple[str, str]], indent: int = 2) -> None:
        """A label, and prose that wraps beside it."""
        grid = Table.grid(padding=(0, 2, 0, 0))
        grid.add_column(no_wrap=True)
        grid.add_column(overflow="fold")
        for label, text in rows:
            grid.add_row(clean(label), _glued(text))
        self._console.print(Padding(grid, (0, 0, 0, indent)))

    def table(
        self,
        columns: Sequence[Column],
        rows: Iterable[Sequence[str]],
        styles: Sequence[str] = (),
    ) -> None:
        """Aligned columns without rules; ``styles`` go with ``rows``."""
        cells = [[_glued(cell) for cell in row] for row in rows]
        kept = _fitting(columns, cells, self.width - 2)
        columns = [columns[n] for n in kept]
        table = Table(
            box=None,
            pad_edge=False,
            padding=(0, 2, 0, 0),
            header_style="dim",
            show_header=any(column.title for column in columns),
        )
        for column in columns:
            table.add_column(
                column.title,
                justify="right" if column.right else "left",
                no_wrap=not column.wraps,
                overflow="fold" if column.wraps else "ellipsis",
            )
        for index, row in enumerate(cells):
            style = styles[index] if index < len(styles) else ""
            table.add_row(*(row[n] for n in kept), style=style)
        self._console.print(Padding(table, (0, 0, 0, 2)))

    def code(self, code: str) -> None:
        """Lines to paste: from the first column and unwrapped, so that they paste as they are."""
        self.gap()
        for line in code.splitlines():
            self._console.print(Text(clean(line.expandtabs(4))), soft_wrap=True)
        self.gap()

    def text(self) -> str:
        file = self._console.file
        assert isinstance(file, StringIO)
        lines = [line.rstrip() for line in file.getvalue().replace(_GLUE, " ").splitlines()]
        kept = [line for n, line in enumerate(lines) if line or (n and lines[n - 1])]
        return "\n".join(kept).strip("\n") + "\n"


def _fitting(columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int) -> list[int]:
    """Which columns stay, so that the table fits."""
    needed = [_needed(column, [row[n] for row in rows]) for n, column in enumerate(columns)]
    kept = list(range(len(columns)))
    spare = [n for n, column in enumerate(columns) if column.spare]
    for n in sorted(spare, key=lambda n: columns[n].spare):
        if sum(needed[k] + 2 for k in kept) - 2 > width:
            kept.remove(n)
    return kept


def _needed(column: Column, cells: Sequence[str]) -> int:
    widest = max(map(cell_len, (column.title, *cells)))
    return min(widest, _WRAPPED) if column.wraps else widest


def clean(text: str) -> str:
    """``text`` on one line, with what would steer a terminal shown as an escape."""
    text = _LINE_BREAKS.sub(" ", text)
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def _glued(text: str) -> str:
    return _UNIT.sub(_GLUE, clean(text))


def bar(share: float, cells: int) -> str:
    """``share`` of ``cells`` blocks, to half a block; what is there at all gets half a block."""
    halves = round(min(max(share, 0.0), 1.0) * cells * 2)
    if share > 0:
        halves = max(halves, 1)
    return "█" * (halves // 2) + "▌" * (halves % 2)


def are_bars(cells: Sequence[str]) -> bool:
    """Whether a column is of `bar`, which says to the eye what a figure beside it says in words."""
    return any(cells) and all(set("█▌ ").issuperset(cell) for cell in cells)


def opening_word(judged: Diagnosis | Trial) -> Word:
    """What its report opens with."""
    return judged.verdict if judged.has_step else "no training step"


def after_verdict(headline: str, verdict: str) -> str:
    """What stands behind the verdict that ``headline`` opens with, or is to open with."""
    return headline[len(verdict) :] if headline.lower().startswith(verdict) else f": {headline}"


def to_ascii(text: str) -> str:
    """``text`` for a terminal that shows no more than ASCII; bars stay bars."""
    return text.translate(_ASCII).encode("ascii", "backslashreplace").decode("ascii")
