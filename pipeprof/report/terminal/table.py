"""Tables that fit: columns that may be spared go first, then what is left is cut in two."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from rich.cells import cell_len
from rich.table import Table as Grid

from pipeprof.report.document.blocks import Cell, Column, Row, Table
from pipeprof.report.text import bar, clean

NO_BREAK: Final = "\uf8ff"
"""For the space between a figure and its unit, where no line breaks; `clean` lets none in."""
_UNIT: Final = re.compile(r"(?<=\d) (?=%|(?:[nµm]?s|[kMGTPE]?i?B(?:/s)?)(?!\w))")
_TEXT: Final = 20
"""Columns that prose needs, so that it does not become a word a line."""
_BAR: Final = 16
_GAP: Final = 2


def glued(text: str) -> str:
    """``text`` made safe, its figures and their units on one line."""
    return _UNIT.sub(NO_BREAK, clean(text))


def side_by_side(table: Table, room: int) -> Iterator[Table]:
    """``table`` as one that fits, or as several, each with the first column."""
    table = _with_bars(table, room)
    widths = _widths(table)
    part = [0]
    for n in range(1, len(table.columns)):
        if len(part) > 1 and _total([widths[k] for k in (*part, n)]) > room:
            yield _only(table, part)
            part = [0]
        part.append(n)
    yield _only(table, part)


def grid(table: Table) -> Grid:
    """Aligned columns without rules."""
    found = Grid(
        box=None,
        pad_edge=False,
        padding=(0, _GAP, 0, 0),
        header_style="dim",
        show_header=any(column.title for column in table.columns),
    )
    for column in table.columns:
        prose = column.kind == "text"
        found.add_column(
            glued(column.title),
            justify="right" if column.kind == "number" else "left",
            no_wrap=not prose,
            overflow="fold" if prose else "ellipsis",
        )
    for row in table.rows:
        style = {"bad": "red", "good": "bold"}.get(row.tone, "")
        found.add_row(*_texts(row), style=style)
    return found


def _texts(row: Row) -> list[str]:
    """What is a part of the row above is indented."""
    first, *others = (glued(cell.text) for cell in row.cells)
    return [f"{'  ' * row.nested}{first}", *others]


def _with_bars(table: Table, room: int) -> Table:
    """As narrow as sparing allows, with a bar for each share if there is room for that."""
    spared = sorted(column.spare for column in table.columns if column.spare)
    for level in (0, *spared):
        kept = [n for n, column in enumerate(table.columns) if not 0 < column.spare <= level]
        found = _only(table, kept)
        if _total(_widths(found)) <= room:
            break
    drawn = _draw(found)
    return drawn if _total(_widths(drawn)) <= room else found


def _draw(table: Table) -> Table:
    """Behind the last column, the bars of the one that has shares."""
    if not table.has_shares:
        return table
    rows = (
        replace(row, cells=(*row.cells, Cell(bar(row.share or 0.0, _BAR)))) for row in table.rows
    )
    return replace(table, columns=(*table.columns, Column("", "name")), rows=tuple(rows))


def _only(table: Table, kept: Sequence[int]) -> Table:
    rows = (replace(row, cells=tuple(row.cells[n] for n in kept)) for row in table.rows)
    return replace(table, columns=tuple(table.columns[n] for n in kept), rows=tuple(rows))


def _widths(table: Table) -> list[int]:
    rows = [_texts(row) for row in table.rows]
    found = []
    for place, column in enumerate(table.columns):
        widest = max(map(cell_len, (column.title, *(texts[place] for texts in rows))))
        found.append(min(widest, _TEXT) if column.kind == "text" else widest)
    return found


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + _GAP * (len(widths) - 1)
