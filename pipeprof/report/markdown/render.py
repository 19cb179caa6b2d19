"""Render a document as Markdown for a pull request or a ticket.

Words that GitHub would interpret, such as mentions, issue numbers, links, emphasis, HTML and emoji
names, are written as code, which it shows verbatim.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from pipeprof.report.document import blocks as doc
from pipeprof.report.text import bar, clean

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
"""A word that starts a list, a heading, a quotation or a table if it starts a line."""
_BAR: Final = 16


def render_markdown(document: doc.Document) -> str:
    """Return all of ``document`` as Markdown, with nothing folded away."""
    blocks = [text for each in document.without_charts().sections for text in _section(each)]
    return "\n\n".join(blocks) + "\n"


def under_heading(name: str, report: str) -> str:
    """Return ``report`` under a heading, as one of several reports."""
    return f"## {inline(name)}\n\n{report}"


def _section(section: doc.Section) -> Iterator[str]:
    note = f" ({inline(section.note)})" if section.note else ""
    if section.heading:
        yield f"### {inline(section.heading)}{note}"
    for block in section.blocks:
        if text := _block(block):
            yield text


def _block(block: doc.Block) -> str:
    if isinstance(block, doc.Verdict):
        return _verdict(block)
    if isinstance(block, doc.Paragraph | doc.Footnote):
        return inline(block.text)
    if isinstance(block, doc.Subheading):
        return f"**{inline(block.text) or '–'}**"
    if isinstance(block, doc.FigureList):
        return "\n".join(
            f"- **{inline(each.label) or '–'}** {inline(each.text)}" for each in block.figures
        )
    if isinstance(block, doc.Code):
        return _code_block(block)
    return _table(block) if isinstance(block, doc.Table) else ""


def _verdict(verdict: doc.Verdict) -> str:
    subject = f"{inline(verdict.of)} " if verdict.of.strip() else ""
    return f"{subject}**{verdict.word.upper()}**{verdict.joint}{inline(verdict.sentence)}"


def _table(table: doc.Table) -> str:
    """Return a table. Nested rows start with ``↳``; rows that stand out are bold."""
    bars = table.has_shares
    lines = [
        _cells([*(inline(column.title) for column in table.columns), *[""] * bars]),
        _cells(
            ["---:" if column.kind == "number" else ":---" for column in table.columns]
            + [":---"] * bars
        ),
    ]
    lines += [_cells([*_texts(row), *[bar(row.share or 0.0, _BAR)] * bars]) for row in table.rows]
    return "\n".join(lines)


def _texts(row: doc.Row) -> list[str]:
    first, *others = (inline(cell.text) for cell in row.cells)
    first = f"↳ {first}" if first and row.nested else first
    return [f"**{first}**" if first and row.tone else first, *others]


def _cells(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _code_block(code: doc.Code) -> str:
    lines = [clean(line) for line in code.lines]
    fence = _fence("\n".join(lines), least=3)
    return "\n".join([f"{fence}python", *lines, fence])


def inline(text: str) -> str:
    """Return ``text`` on one line, escaped so that each word is shown verbatim."""
    words = clean(text).split()
    first = [_code(words[0]) if _OPENS.fullmatch(words[0]) else _word(words[0])] if words else []
    return " ".join([*first, *map(_word, words[1:])])


def _word(word: str) -> str:
    return _code(word) if _RISKY.search(word) else word


def _code(word: str) -> str:
    """Return ``word`` as code. A ``|`` is written as an entity, as it would end a table cell."""
    if "|" in word:
        return f"<code>{''.join(c if c.isalnum() else f'&#{ord(c)};' for c in word)}</code>"
    fence = _fence(word)
    space = " " if word.startswith("`") or word.endswith("`") else ""
    return f"{fence}{space}{word}{space}{fence}"


def _fence(text: str, least: int = 1) -> str:
    """Return a fence that is longer than any run of backticks in ``text``."""
    longest = max(map(len, re.findall("`+", text)), default=0)
    return "`" * max(longest + 1, least)
