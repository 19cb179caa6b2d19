"""The parts of a document. They say what something means; each renderer decides how it looks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from pipeprof.report.document.charts import ChartData

Tone: TypeAlias = Literal["", "good", "bad", "unsure"]
"""What a verdict, a figure or a row means for the reader."""
ColumnKind: TypeAlias = Literal["name", "number", "text"]
"""*name*: a word or two; *number*: a figure with its unit; *text*: prose, which wraps."""


@dataclass(frozen=True)
class Verdict:
    """The word that a report opens with, and its sentence."""

    word: str
    sentence: str
    tone: Tone = ""
    of: str = ""
    """What it is about, where a report has several."""
    joint: str = ": "
    """What joins the word and its sentence, where they stand on one line."""


@dataclass(frozen=True)
class Paragraph:
    text: str


@dataclass(frozen=True)
class Footnote:
    """A legend, or a limit of what stands above it."""

    text: str


@dataclass(frozen=True)
class Subheading:
    text: str


@dataclass(frozen=True)
class LabelledFigure:
    """A labelled value."""

    label: str
    value: str
    remark: str = ""
    """Its interval, or what it rests on."""
    tone: Tone = ""

    @property
    def text(self) -> str:
        """The value and its remark on one line."""
        return f"{self.value} ({self.remark})" if self.remark else self.value


@dataclass(frozen=True)
class FigureList:
    figures: tuple[LabelledFigure, ...]

    def __bool__(self) -> bool:
        return bool(self.figures)


@dataclass(frozen=True)
class KeyFigures(FigureList):
    """The few that answer the question; a page shows them large."""


@dataclass(frozen=True)
class Cell:
    text: str
    share: float | None = None
    """0..1, drawn as a bar beside or behind the text."""
    sort: float | None = None
    """What a sorted table goes by, where that is a number."""
    term: str = ""
    """The stage or cause that it names, which a glossary may explain."""


@dataclass(frozen=True)
class Column:
    title: str = ""
    kind: ColumnKind = "number"
    spare: int = 0
    """A narrow terminal leaves out 1 first, then 2, and so on; 0 always stays."""


@dataclass(frozen=True)
class Row:
    cells: tuple[Cell, ...]
    tone: Tone = ""
    """Why it stands out from the others, if it does."""
    nested: bool = False
    """It is a part of the row above."""

    @property
    def share(self) -> float | None:
        """Of the cell that has one."""
        return next((cell.share for cell in self.cells if cell.share is not None), None)


@dataclass(frozen=True)
class Table:
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    sortable: bool = False
    """Its rows may be read in any order."""

    @property
    def has_shares(self) -> bool:
        return any(row.share is not None for row in self.rows)


@dataclass(frozen=True)
class Code:
    """Lines to paste, as they are."""

    text: str

    @property
    def lines(self) -> list[str]:
        return self.text.expandtabs(4).splitlines()


@dataclass(frozen=True)
class Chart:
    """Data to be drawn. Its figures stand in a table beside it, so text does without it."""

    name: str
    """Unique in the document."""
    title: str
    description: str
    """What the picture shows, in words."""
    data: ChartData


Block: TypeAlias = Verdict | Paragraph | Footnote | Subheading | FigureList | Table | Code | Chart


@dataclass(frozen=True)
class Section:
    name: str
    """For links: letters and hyphens."""
    heading: str
    """Empty for the one that opens the document."""
    blocks: tuple[Block, ...]
    note: str = ""
    """What the reader must know to read it."""
    evidence: bool = False
    """It supports the answer rather than being part of it; a notebook folds it away."""


@dataclass(frozen=True)
class Document:
    title: str
    subject: str
    """``profile``, ``sweep``, ``comparison`` …"""
    sections: tuple[Section, ...]
    created: str = ""
    version: str = ""
    """Of pipeprof, when it was measured."""

    def filled(self) -> Document:
        """Without the sections that have nothing in them."""
        return replace(self, sections=tuple(each for each in self.sections if each.blocks))

    def without_charts(self) -> Document:
        """For a medium that draws none."""
        sections = (
            replace(each, blocks=tuple(b for b in each.blocks if not isinstance(b, Chart)))
            for each in self.sections
        )
        return replace(self, sections=tuple(sections)).filled()

    def charts(self) -> list[Chart]:
        """All of them, from top to bottom."""
        return [b for each in self.sections for b in each.blocks if isinstance(b, Chart)]


def section(
    name: str, heading: str, *blocks: Block | str | None, note: str = "", evidence: bool = False
) -> Section:
    """A section of those ``blocks`` that are not empty; plain text is a `Footnote`."""
    found = (Footnote(each) if isinstance(each, str) else each for each in blocks if each)
    return Section(name, heading, tuple(found), note, evidence)


def row(*cells: Cell | str, tone: Tone = "", nested: bool = False) -> Row:
    """A row in which plain text needs no `Cell`."""
    return Row(tuple(Cell(c) if isinstance(c, str) else c for c in cells), tone, nested)


def term(name: str, text: str = "") -> Cell:
    """A cell that names a stage or a cause, as it is or within ``text``."""
    return Cell(text or name, term=name)


def columns(names: Iterable[str], kind: ColumnKind = "number") -> tuple[Column, ...]:
    """One of a kind for each title."""
    return tuple(Column(name, kind) for name in names)


def figures(pairs: Iterable[tuple[str, str]]) -> FigureList:
    """A label and its text each; of those that have a text."""
    return FigureList(tuple(LabelledFigure(label, text) for label, text in pairs if text))
