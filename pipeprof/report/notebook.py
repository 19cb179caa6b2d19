"""The terminal's report as a notebook shows it: Jupyter, VS Code, GitHub's static view.

The same words and tables, written by the same code, in plain HTML: no script, and bars of
characters, so that where styles are stripped, as on GitHub, it still reads well. Colours follow the
notebook's own, light or dark.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

from pipeprof.report.base import Result
from pipeprof.report.layout import WORST_STYLE, Column, Page, Word, are_bars, clean
from pipeprof.report.terminal import write_page

FOLDED: Final = ("What making a batch took", "Requests of storage", "Workers side by side",
                 "Trials", "How sure")  # fmt: skip
"""Sections that are closed at first, by how their titles begin."""
# Notebooks style all tables of their cells: two classes and the elements' names outweigh that.
_STYLE: Final = """\
<style>
.pipeprof-shown { line-height: 1.45; max-width: 62rem; }
.pipeprof-shown .said { font-size: 1.1em; margin: 0.4em 0; }
.pipeprof-shown .word { color: #fff; background: #565d66; border-radius: 1em; padding: 0.1em 0.7em;
  font-size: 0.8em; font-weight: 700; letter-spacing: 0.05em; white-space: nowrap; }
.pipeprof-shown .bad { background: #c04b00; }
.pipeprof-shown .good { background: #00755a; }
.pipeprof-shown p { margin: 0.3em 0; }
.pipeprof-shown details { margin: 0.6em 0; }
.pipeprof-shown summary { cursor: pointer; }
.pipeprof-shown .note { opacity: 0.75; }
.pipeprof-shown div.wide { overflow-x: auto; }
div.pipeprof-shown.pipeprof-shown div table { border-collapse: collapse; margin: 0.3em 0;
  font-size: 0.95em; table-layout: auto; }
div.pipeprof-shown.pipeprof-shown div table tr,
div.pipeprof-shown.pipeprof-shown div table tr:hover { background: none; }
div.pipeprof-shown.pipeprof-shown div table tr > * { text-align: left; vertical-align: baseline;
  padding: 0.15em 1em 0.15em 0; border: 0; border-bottom: 1px solid rgba(128, 128, 128, 0.3);
  font-weight: normal; white-space: nowrap; max-width: none; font-variant-numeric: tabular-nums; }
div.pipeprof-shown.pipeprof-shown div table tr > .right { text-align: right; }
div.pipeprof-shown.pipeprof-shown div table tr > .prose { white-space: normal; min-width: 14em;
  overflow-wrap: anywhere; }
div.pipeprof-shown.pipeprof-shown div table tr.worst > * { font-weight: 700; }
div.pipeprof-shown.pipeprof-shown div table tr > .bar { font-family: monospace; color: #7d8b9a; }
div.pipeprof-shown.pipeprof-shown div table tr.worst > .bar { color: #d55e00; }
</style>
"""
_TONES: Final = {"starved": " bad", "slower": " bad", "fed": " good", "faster": " good"}


def render_notebook(result: Result) -> str:
    """A fragment of HTML."""
    page = _Fragment()
    write_page(page, result)
    return page.text()


class _Fragment(Page):
    """A page of the terminal's that keeps HTML in place of lines."""

    def __init__(self) -> None:
        super().__init__(width=0, color=False)
        self._parts: list[str] = []
        self._open = False
        """Whether a section has begun, which ends with the next or the page."""

    def gap(self) -> None:
        pass

    def heading(self, title: str, note: str = "") -> None:
        self._end_section()
        unfolded = "" if title.startswith(FOLDED) else " open"
        said = f' <span class="note">{_shown(note)}</span>' if note else ""
        self._parts.append(f"<details{unfolded}><summary><b>{_shown(title)}</b>{said}</summary>")
        self._open = True

    def line(self, text: str, indent: int = 2) -> None:
        self._parts.append(f"<p>{_shown(text)}</p>")

    def verdict(self, verdict: Word, headline: str, of: str = "") -> None:
        opens = headline.lower().startswith(verdict)
        rest = headline[len(verdict) :].lstrip(": ") if opens else headline
        named = f"{_shown(of.strip())} " if of.strip() else ""
        word = f'<b class="word{_TONES.get(verdict, "")}">{_shown(verdict.upper())}</b>'
        self._parts.append(f'<p class="said">{named}{word} {_shown(rest)}</p>')

    def pairs(self, rows: Iterable[tuple[str, str]], indent: int = 2) -> None:
        self._table(
            f'<tr><th scope="row">{_shown(label)}</th><td class="prose">{_shown(text)}</td></tr>'
            for label, text in rows
        )

    def table(
        self,
        columns: Sequence[Column],
        rows: Iterable[Sequence[str]],
        styles: Sequence[str] = (),
    ) -> None:
        cells = [tuple(row) for row in rows]
        kinds = [_kind(column, [row[n] for row in cells]) for n, column in enumerate(columns)]
        head = "".join(
            f'<th scope="col"{kind}>{_shown(column.title)}</th>'
            for column, kind in zip(columns, kinds, strict=True)
        )
        titled = any(column.title for column in columns)
        self._table([
            *([f"<tr>{head}</tr>"] if titled else []),
            *(
                _row(row, kinds, place < len(styles) and styles[place] == WORST_STYLE)
                for place, row in enumerate(cells)
            ),
        ])  # fmt: skip

    def code(self, code: str) -> None:
        lines = "\n".join(_shown(line, keep=True) for line in code.expandtabs(4).splitlines())
        self._parts.append(f"<pre><code>{lines}</code></pre>")

    def text(self) -> str:
        self._end_section()
        return f'{_STYLE}<div class="pipeprof-shown">{"".join(self._parts)}</div>\n'

    def _table(self, rows: Iterable[str]) -> None:
        self._parts.append(f'<div class="wide"><table><tbody>{"".join(rows)}</tbody></table></div>')

    def _end_section(self) -> None:
        if self._open:
            self._parts.append("</details>")
        self._open = False


def _row(row: Sequence[str], kinds: Sequence[str], worst: bool) -> str:
    """What is part of the row above opens with ``↳``."""
    name = f"↳ {_shown(row[0].strip())}" if row[0].startswith("  ") else _shown(row[0])
    cells = [name, *map(_shown, row[1:])]
    marked = ' class="worst"' if worst else ""
    filled = (f"<td{kind}>{cell}</td>" for kind, cell in zip(kinds, cells, strict=True))
    return f"<tr{marked}>{''.join(filled)}</tr>"


def _kind(column: Column, cells: Sequence[str]) -> str:
    if are_bars(cells):
        return ' class="bar" aria-hidden="true"'
    if column.right:
        return ' class="right"'
    return ' class="prose"' if column.wraps else ""


def _shown(text: str, keep: bool = False) -> str:
    """``text`` as it is, on one line, and steering nothing; ``keep`` its spaces at the ends."""
    return escape(clean(text if keep else text.rstrip()))
