"""The terminal's report in GitHub's Markdown, for a pull request or a ticket.

The same words and tables, written by the same code. Whatever GitHub might take for a mark of its
own (a mention, an issue's number, a link, emphasis, HTML, an emoji's name) stands as code, which is
shown as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from pipeprof.report.base import Result
from pipeprof.report.layout import Column, Page, Word, after_verdict, clean
from pipeprof.report.terminal import write_page

_RISKY: Final = re.compile(
    r"""[`*\[\]<>~\\&$|]            # emphasis, links, HTML, escapes, entities, formulas, cells
    | (?<![^\W_])_ | _(?![^\W_])    # emphasis; not within a name
    | :// | www\.                   # links
    | @\w | \#\w | \bGH-\d          # mentions, issues
    | :[\w+-]+:                     # emoji
    | \b[0-9a-f]{7,40}\b            # commits
    """,
    re.VERBOSE | re.IGNORECASE | re.ASCII,
)
_OPENS: Final = re.compile(r"[-+=|#>]+|\d+[.)]|:?-+:?")
"""A word that begins a list, a heading, a quotation or a table where it begins a line."""


class MarkdownRenderer:
    """Sections, tables and lists; code to paste in blocks."""

    name = "markdown"

    def render(self, result: Result) -> str:
        return render_markdown(result)


def render_markdown(result: Result) -> str:
    return markdown_of(lambda page: write_page(page, result))


def markdown_of(write: Callable[[Page], None]) -> str:
    """Whatever is written on a page."""
    page = MarkdownPage()
    write(page)
    return page.text()


def named(name: str, report: str) -> str:
    """``report`` under a heading of its own, as one of several."""
    return f"## {inline(name)}\n\n{report}"


class MarkdownPage(Page):
    """A page of the terminal's that keeps blocks of Markdown in place of lines."""

    def __init__(self) -> None:
        super().__init__(width=0, color=False)
        self._blocks: list[str] = []
        self._head: int | None = None
        """Place of a line that what stands deeper below it would be a heading of."""

    def gap(self) -> None:
        pass

    def heading(self, title: str, note: str = "") -> None:
        self._blocks.append(f"### {inline(title)}" + (f" ({inline(note)})" if note else ""))

    def line(self, text: str, indent: int = 2) -> None:
        self._head = len(self._blocks)
        self._blocks.append(inline(text))

    def verdict(self, verdict: Word, headline: str, of: str = "") -> None:
        named = f"{inline(of.strip())} " if of.strip() else ""
        self._blocks.append(
            f"{named}**{verdict.upper()}**{_rest(after_verdict(headline, verdict))}"
        )

    def pairs(self, rows: Iterable[tuple[str, str]], indent: int = 2) -> None:
        if indent > 2 and self._head == len(self._blocks) - 1:
            self._blocks[-1] = f"**{self._blocks[-1]}**"
        self._blocks.append(
            "\n".join(f"- **{_bold(label)}** {inline(text)}" for label, text in rows)
        )

    def table(
        self,
        columns: Sequence[Column],
        rows: Iterable[Sequence[str]],
        styles: Sequence[str] = (),
    ) -> None:
        """What is part of the row above opens with ``↳``; a row that stands out is bold."""
        lines = [
            _row([inline(column.title) for column in columns]),
            _row(["---:" if column.right else ":---" for column in columns]),
        ]
        for place, row in enumerate(rows):
            cells = [_nested(row[0]), *(inline(cell) for cell in row[1:])]
            if place < len(styles) and styles[place] and cells[0]:
                cells[0] = f"**{cells[0]}**"
            lines.append(_row(cells))
        self._blocks.append("\n".join(lines))

    def code(self, code: str) -> None:
        lines = [clean(line) for line in code.expandtabs(4).splitlines()]
        fence = _fence("\n".join(lines), least=3)
        self._blocks.append("\n".join([f"{fence}python", *lines, fence]))

    def text(self) -> str:
        return "\n\n".join(block for block in self._blocks if block) + "\n"


def inline(text: str) -> str:
    """``text`` on one line, each word of it shown as it is."""
    words = clean(text).split()
    first = [_code(words[0]) if _OPENS.fullmatch(words[0]) else _word(words[0])] if words else []
    return " ".join([*first, *map(_word, words[1:])])


def _word(word: str) -> str:
    return _code(word) if _RISKY.search(word) else word


def _code(word: str) -> str:
    """In a table a bar ends its cell even in code, unless no bar is written."""
    if "|" in word:
        return f"<code>{''.join(c if c.isalnum() else f'&#{ord(c)};' for c in word)}</code>"
    fence = _fence(word)
    space = " " if word.startswith("`") or word.endswith("`") else ""
    return f"{fence}{space}{word}{space}{fence}"


def _fence(text: str, least: int = 1) -> str:
    """Longer than any run of backticks in ``text``."""
    longest = max(map(len, re.findall("`+", text)), default=0)
    return "`" * max(longest + 1, least)


def _rest(headline: str) -> str:
    """What follows a verdict, with the mark that it begins with."""
    told = inline(headline)
    return told if headline[:1] in ":;," else f" {told}"


def _bold(label: str) -> str:
    """Within ``**``, where code may stand, but nothing empty."""
    return inline(label) or "–"


def _nested(name: str) -> str:
    told = inline(name)
    return f"↳ {told}" if told and name.startswith("  ") else told


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
