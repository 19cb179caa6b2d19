"""Extract the sentences of documents, docstrings, comments and messages."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from itertools import groupby

Sentence = tuple[int, str]
"""The line at which the paragraph begins, and the sentence. Code is replaced by the word CODE."""

_NO_PROSE = re.compile(r"^ *(```|~~~).*?^ *\1 *$|<!--.*?-->", re.MULTILINE | re.DOTALL)
_LIST_ITEM = re.compile(r"([-*+]|\d+\.) +")
_SENTENCE_END = re.compile(r"(?<=[.!?])(?<!e\.g\.)(?<!i\.e\.)(?<!et al\.)[*_)\"']* +")
_SECTION = re.compile(r"^ *(Args|Returns|Yields|Raises|Examples?|Attributes|Note):$", re.MULTILINE)
_FIELD = re.compile(r"^ +(?=[\w*, `.]+: )", re.MULTILINE)
_EXAMPLE = re.compile(r"^ *(>>>|\.\.\.) .*$", re.MULTILINE)
_EXAMPLES_OF_CLICK = re.compile(r"\x08.*?(\n *\n|\Z)", re.DOTALL)
_PRAGMA = re.compile(r"# *(fmt|noqa|type|pragma)\b")


def of_markdown(text: str) -> Iterator[Sentence]:
    """Yield the sentences of a document, without code blocks, tables, headings and captions."""
    for line, paragraph in _paragraphs(text):
        yield from _split(line, paragraph)


def of_python(source: str) -> Iterator[Sentence]:
    """Yield the sentences of docstrings, comments and strings of more than one word."""
    tree = ast.parse(source)
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    parts = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr)
        for part in ast.walk(node)
        if part is not node
    }
    for node in ast.walk(tree):
        text = None if id(node) in parts else _text(node)
        if text and id(node) in docstrings:
            yield from _of_docstring(node.lineno, text)
        elif text and " " in text:
            yield from _split(node.lineno, _EXAMPLES_OF_CLICK.sub("\n", text))
    yield from _of_comments(source)


def _text(node: ast.AST) -> str | None:
    """Return the text of a string or an f-string, with CODE in place of each value."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        values = (each.value if isinstance(each, ast.Constant) else "CODE" for each in node.values)
        return "".join(map(str, values))
    return None


def _of_docstring(line: int, text: str) -> Iterator[Sentence]:
    text = _EXAMPLES_OF_CLICK.sub("\n", text)
    text = _FIELD.sub("\n\n", _SECTION.sub("\n", _EXAMPLE.sub("", text)))
    for at, paragraph in _paragraphs(text):
        yield from _split(line + at - 1, paragraph)


def _of_comments(source: str) -> Iterator[Sentence]:
    """Yield the sentences of comments. Comments on adjacent lines are one text."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    comments = [
        (token.start[0], token.string.lstrip("# "))
        for token in tokens
        if token.type == tokenize.COMMENT and not _PRAGMA.match(token.string)
    ]
    for _, group in groupby(enumerate(comments), lambda pair: pair[1][0] - pair[0]):
        lines = [comment for _, comment in group]
        yield from _split(lines[0][0], " ".join(text for _, text in lines))


def _split(line: int, paragraph: str) -> Iterator[Sentence]:
    plain = re.sub(r"``.+?``|`[^`]+`", "CODE", paragraph)
    plain = re.sub(r"!\[[^\]]*\]\([^)]*\)", "", plain)
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", plain)
    for sentence in _SENTENCE_END.split(plain):
        yield line, sentence


def _paragraphs(markdown: str) -> Iterator[tuple[int, str]]:
    """Yield each paragraph and each list item, with the line at which it begins."""
    text = _NO_PROSE.sub(lambda found: "\n" * found[0].count("\n"), markdown)
    begin, lines = 1, list[str]()
    for number, line in enumerate([*text.splitlines(), ""], 1):
        words = line.strip().lstrip("> ")
        item, is_prose = _LIST_ITEM.match(words), words and words[0] not in "|#<├└│"
        if lines and (item or not is_prose):
            yield begin, " ".join(lines)
            lines = []
        if is_prose:
            begin = begin if lines else number
            lines.append(words[item.end() :] if item else words)
