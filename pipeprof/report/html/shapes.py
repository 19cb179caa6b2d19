"""What a page is made of: plain data, before any HTML. A view builds it, a template writes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias

from pipeprof.report.layout import Word

Tone = Literal["", "worst", "best", "quiet"]
"""What makes a row or a figure stand out, beside its words."""


@dataclass(frozen=True)
class Cell:
    """Of a table."""

    text: str
    word: str = ""
    """Its entry in the glossary."""
    share: float | None = None
    """0..1: drawn as a bar behind the text."""
    sort: float | str | None = None
    """What a sortable table goes by; ``None``: the text, or unknown, which comes last."""
    within: bool = False
    """Part of the row above."""


@dataclass(frozen=True)
class Column:
    title: str = ""
    right: bool = True
    """Figures stand to the right, names to the left."""
    prose: bool = False
    """Its cells wrap."""
    word: str = ""
    """The title's entry in the glossary."""


@dataclass(frozen=True)
class Row:
    cells: tuple[Cell, ...]
    tone: Tone = ""


@dataclass(frozen=True)
class Table:
    kind: ClassVar = "table"
    caption: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    sortable: bool = False
    cards: bool = False
    """On a phone each row stands on its own: it is mostly sentences."""


@dataclass(frozen=True)
class Chart:
    """A picture, and what it says in words. Its figures stand in a table beside it."""

    kind: ClassVar = "chart"
    name: str
    """Unique in the page."""
    title: str
    description: str
    spec: Mapping[str, Any]
    """Vega-Lite. Names of the user's are values of its data, never part of an expression."""
    zoomable: bool = False
    """Along x, between its parameters ``from`` and ``to``."""


@dataclass(frozen=True)
class Folded:
    """The figures of a chart, to be opened; open where there are no scripts, and on paper."""

    kind: ClassVar = "folded"
    title: str
    table: Table


@dataclass(frozen=True)
class Lines:
    """Prose."""

    kind: ClassVar = "lines"
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Heading:
    kind: ClassVar = "heading"
    title: str
    note: str = ""


@dataclass(frozen=True)
class Pairs:
    """A label, and prose beside it."""

    kind: ClassVar = "pairs"
    rows: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Code:
    """Lines to paste."""

    kind: ClassVar = "code"
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Said:
    """A verdict and its sentence; ``of`` what it is."""

    kind: ClassVar = "said"
    verdict: Word
    sentence: str
    of: str = ""


Block: TypeAlias = "Table | Chart | Folded | Lines | Heading | Pairs | Code | Said"


@dataclass(frozen=True)
class Section:
    name: str
    """For links."""
    title: str
    note: str
    """What the reader must know to read what follows."""
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Fact:
    """A figure that stands out at the top."""

    label: str
    value: str
    note: str
    tone: Tone = ""


@dataclass(frozen=True)
class View:
    """A whole page."""

    title: str
    what: str
    """``profile`` or ``sweep``."""
    created: str
    verdicts: tuple[Said, ...]
    facts: tuple[Fact, ...]
    opening: tuple[Block, ...]
    """Below the facts."""
    sections: tuple[Section, ...]
    version: str
    """Of pipeprof, when it was measured."""


def charts(view: View) -> list[Chart]:
    """All of a page, from top to bottom."""
    return [b for section in view.sections for b in section.blocks if isinstance(b, Chart)]


def row(*cells: Cell | str, tone: Tone = "") -> Row:
    """Plain text needs no `Cell`."""
    return Row(tuple(Cell(c) if isinstance(c, str) else c for c in cells), tone)
