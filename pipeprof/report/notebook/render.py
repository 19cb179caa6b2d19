"""Render a document as plain HTML for Jupyter, VS Code and GitHub's static view.

It uses no scripts, and draws bars with characters, so it still reads well where styles are removed,
as on GitHub. Colours follow the notebook's light or dark theme.
"""

from __future__ import annotations

from functools import cache
from html import escape
from importlib.resources import files
from typing import Final

from pipeprof.report.document import blocks as doc
from pipeprof.report.text import bar, clean

_BAR: Final = 16
_CLASSES: Final = {"number": ' class="right"', "text": ' class="prose"', "name": ""}


def render_notebook(document: doc.Document) -> str:
    """Return a fragment of HTML in which sections of evidence are folded."""
    sections = "".join(map(_section, document.without_charts().sections))
    return f'<style>\n{_style()}</style>\n<div class="pipeprof-shown">{sections}</div>\n'


@cache
def _style() -> str:
    text = (files("pipeprof.report.notebook") / "style.css").read_text("utf-8")
    return text.partition("*/\n")[2]


def _section(section: doc.Section) -> str:
    blocks = "".join(map(_block, section.blocks))
    if not section.heading:
        return blocks
    unfolded = "" if section.evidence else " open"
    note = f' <span class="note">{_text(section.note)}</span>' if section.note else ""
    summary = f"<summary><b>{_text(section.heading)}</b>{note}</summary>"
    return f"<details{unfolded}>{summary}{blocks}</details>"


def _block(block: doc.Block) -> str:
    if isinstance(block, doc.Verdict):
        return _verdict(block)
    if isinstance(block, doc.Paragraph):
        return f"<p>{_text(block.text)}</p>"
    if isinstance(block, doc.Footnote):
        return f'<p class="note">{_text(block.text)}</p>'
    if isinstance(block, doc.Subheading):
        return f"<p><b>{_text(block.text)}</b></p>"
    if isinstance(block, doc.FigureList):
        return _framed("".join(
            f'<tr><th scope="row">{_text(each.label)}</th><td class="prose">{_text(each.text)}</td>'
            "</tr>"
            for each in block.figures
        ))  # fmt: skip
    if isinstance(block, doc.Code):
        lines = "\n".join(escape(clean(line)) for line in block.lines)
        return f"<pre><code>{lines}</code></pre>"
    return _table(block) if isinstance(block, doc.Table) else ""


def _verdict(verdict: doc.Verdict) -> str:
    subject = f"{_text(verdict.of)} " if verdict.of.strip() else ""
    word = f'<b class="word {verdict.tone}">{_text(verdict.word.upper())}</b>'
    return f'<p class="verdict">{subject}{word} {_text(verdict.sentence)}</p>'


def _table(table: doc.Table) -> str:
    bars = table.has_shares
    titles = "".join(
        f'<th scope="col"{_CLASSES[column.kind]}>{_text(column.title)}</th>'
        for column in table.columns
    )
    titled = any(column.title for column in table.columns)
    head = f"<tr>{titles}{'<th></th>' * bars}</tr>" if titled else ""
    return _framed(head + "".join(_row(row, table.columns, bars) for row in table.rows))


def _row(row: doc.Row, columns: tuple[doc.Column, ...], bars: bool) -> str:
    """Return a row of a table. A nested row starts with ``↳``."""
    cells = [
        f"<td{_CLASSES[column.kind]}>{'↳ ' * (row.nested and not n)}{_text(cell.text)}</td>"
        for n, (column, cell) in enumerate(zip(columns, row.cells, strict=True))
    ]
    if bars:
        cells.append(f'<td class="bar" aria-hidden="true">{bar(row.share or 0.0, _BAR)}</td>')
    tone = f' class="{row.tone}"' if row.tone else ""
    return f"<tr{tone}>{''.join(cells)}</tr>"


def _framed(rows: str) -> str:
    return f'<div class="wide"><table><tbody>{rows}</tbody></table></div>'


def _text(text: str) -> str:
    """Return ``text`` escaped for HTML, on one line and without control characters."""
    return escape(clean(text.rstrip()))
