"""Define the parts of a document. They carry meaning; each renderer decides how they look."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from pipeprof.report.document.charts import ChartData

Tone: TypeAlias = Literal["", "good", "bad", "unsure"]
"""Whether a verdict, a figure or a row is good or bad news."""
ColumnKind: TypeAlias = Literal["name", "number", "text"]
"""*name*: a word or two; *number*: a figure with its unit; *text*: prose, which wraps."""


@dataclass(frozen=True)
class Verdict:
    """The word with which a report opens, and its sentence."""

    word: str
    sentence: str
    tone: Tone = ""
    of: str = ""
    """The data set or run that it concerns, where a report has several verdicts."""
    joint: str = ": "
    """The text between the word and the sentence where both stand on one line."""


@dataclass(frozen=True)
class Paragraph:
    text: str


@dataclass(frozen=True)
class Footnote:
    """A legend or a limitation of the block above it."""

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
    """The interval of the value, or the evidence for it."""
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
    """The few figures that answer the reader's question; a page shows them large."""


@dataclass(frozen=True)
class Cell:
    text: str
    share: float | None = None
    """A share of 0..1 that is drawn as a bar next to or behind the text."""
    sort: float | None = None
    """The number by which a table is sorted; ``None`` sorts by the text."""
    term: str = ""
    """The stage or cause that the cell names, for a link to the glossary."""


@dataclass(frozen=True)
class Column:
    title: str = ""
    kind: ColumnKind = "number"
    spare: int = 0
    """Order in which a narrow terminal drops columns: 1 first, then 2; 0 always stays."""


@dataclass(frozen=True)
class Row:
    cells: tuple[Cell, ...]
    tone: Tone = ""
    """Whether the row stands out as good or bad."""
    nested: bool = False
    """Whether the row is a part of the row above."""

    @property
    def share(self) -> float | None:
        """The share of the first cell that has one."""
        return next((cell.share for cell in self.cells if cell.share is not None), None)


@dataclass(frozen=True)
class Table:
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    sortable: bool = False
    """Whether a reader may reorder the rows."""

    @property
    def has_shares(self) -> bool:
        return any(row.share is not None for row in self.rows)


@dataclass(frozen=True)
class Code:
    """Python code to paste, shown verbatim."""

    text: str

    @property
    def lines(self) -> list[str]:
        return self.text.expandtabs(4).splitlines()


@dataclass(frozen=True)
class Chart:
    """Data to be drawn. A table holds the same figures, so text renderers leave charts out."""

    name: str
    """A name that is unique in the document."""
    title: str
    description: str
    """A sentence that says what the picture shows."""
    data: ChartData


Block: TypeAlias = Verdict | Paragraph | Footnote | Subheading | FigureList | Table | Code | Chart


@dataclass(frozen=True)
class Section:
    name: str
    """The target of links: letters and hyphens."""
    heading: str
    """The heading; empty for the section that opens the document."""
    blocks: tuple[Block, ...]
    note: str = ""
    """A remark next to the heading that the reader needs first, such as the unit."""
    evidence: bool = False
    """Whether the section supports the answer but is no part of it; a notebook folds it away."""


@dataclass(frozen=True)
class Document:
    title: str
    subject: str
    """``profile``, ``sweep``, ``comparison`` …"""
    sections: tuple[Section, ...]
    created: str = ""
    version: str = ""
    """The version of pipeprof that measured the result."""

    def filled(self) -> Document:
        """Return the document without its empty sections."""
        return replace(self, sections=tuple(each for each in self.sections if each.blocks))

    def without_charts(self) -> Document:
        """Return the document for a medium that draws no charts."""
        sections = (
            replace(each, blocks=tuple(b for b in each.blocks if not isinstance(b, Chart)))
            for each in self.sections
        )
        return replace(self, sections=tuple(sections)).filled()

    def charts(self) -> list[Chart]:
        """Return all charts from top to bottom."""
        return [b for each in self.sections for b in each.blocks if isinstance(b, Chart)]


def section(
    name: str, heading: str, *blocks: Block | str | None, note: str = "", evidence: bool = False
) -> Section:
    """Build a section of the ``blocks`` that are not empty; a string becomes a `Footnote`."""
    kept = (Footnote(each) if isinstance(each, str) else each for each in blocks if each)
    return Section(name, heading, tuple(kept), note, evidence)


def row(*cells: Cell | str, tone: Tone = "", nested: bool = False) -> Row:
    """Build a row; a string becomes a `Cell`."""
    return Row(tuple(Cell(c) if isinstance(c, str) else c for c in cells), tone, nested)


def term(name: str, text: str = "") -> Cell:
    """Build a cell for the stage or cause ``name``, shown as ``text`` if that is given."""
    return Cell(text or name, term=name)


def columns(titles: Iterable[str], kind: ColumnKind = "number") -> tuple[Column, ...]:
    """Build a column of one kind for each title."""
    return tuple(Column(title, kind) for title in titles)


def figures(pairs: Iterable[tuple[str, str]]) -> FigureList:
    """Build a list of labelled figures from the (label, text) pairs that have a text."""
    return FigureList(tuple(LabelledFigure(label, text) for label, text in pairs if text))
