"""Fit tables into a width: drop columns that can be spared, then split the rest."""

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
"""Stands for a space at which no line may break; `clean` removes it from user-given text."""
_UNIT: Final = re.compile(r"(?<=\d) (?=%|(?:[nµm]?s|[kMGTPE]?i?B(?:/s)?)(?!\w))")
_PROSE: Final = 20
"""Least columns of prose, so that it does not wrap after every word."""
_BAR: Final = 16
_GAP: Final = 2
"""Spaces between columns."""


def glued(text: str) -> str:
    """Return ``text`` made safe, with no line break between a figure and its unit."""
    return _UNIT.sub(NO_BREAK, clean(text))


def split_to_fit(table: Table, room: int) -> Iterator[Table]:
    """Yield ``table`` if it fits into ``room`` columns, or else parts with its first column."""
    table = _fit(table, room)
    widths = _widths(table)
    part = [0]
    for n in range(1, len(table.columns)):
        if len(part) > 1 and _total([widths[k] for k in (*part, n)]) > room:
            yield _only(table, part)
            part = [0]
        part.append(n)
    yield _only(table, part)


def grid(table: Table) -> Grid:
    """Return ``table`` as aligned columns without rules."""
    lines = Grid(
        box=None,
        pad_edge=False,
        padding=(0, _GAP, 0, 0),
        header_style="dim",
        show_header=any(column.title for column in table.columns),
    )
    for column in table.columns:
        prose = column.kind == "text"
        lines.add_column(
            glued(column.title),
            justify="right" if column.kind == "number" else "left",
            no_wrap=not prose,
            overflow="fold" if prose else "ellipsis",
        )
    for row in table.rows:
        style = {"bad": "red", "good": "bold"}.get(row.tone, "")
        lines.add_row(*_texts(row), style=style)
    return lines


def _texts(row: Row) -> list[str]:
    """Return the texts of a row; the first is indented in a nested row."""
    first, *others = (glued(cell.text) for cell in row.cells)
    return [f"{'  ' * row.nested}{first}", *others]


def _fit(table: Table, room: int) -> Table:
    """Drop columns until the table fits, then add a bar for each share if that fits too."""
    spared = sorted(column.spare for column in table.columns if column.spare)
    for level in (0, *spared):
        kept = [n for n, column in enumerate(table.columns) if not 0 < column.spare <= level]
        narrow = _only(table, kept)
        if _total(_widths(narrow)) <= room:
            break
    drawn = _add_bars(narrow)
    return drawn if _total(_widths(drawn)) <= room else narrow


def _add_bars(table: Table) -> Table:
    """Add a last column with the bars of the shares, if the table has shares."""
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
    widths = []
    for place, column in enumerate(table.columns):
        widest = max(map(cell_len, (column.title, *(texts[place] for texts in rows))))
        widths.append(min(widest, _PROSE) if column.kind == "text" else widest)
    return widths


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + _GAP * (len(widths) - 1)
