"""Make text safe to show: on one line, without control characters, within a given width."""

from __future__ import annotations

import re
import sys
from typing import Final, TextIO

_LINE_BREAKS: Final = re.compile(r"[^\S ]+")
_ASCII: Final = str.maketrans(
    {"█": "#", "▌": "-", "·": "|", "–": "-", "→": "->", "×": "x", "µ": "u", "μ": "u", "…": "...",
     "−": "-", "⌈": "ceil(", "⌉": ")", "√": "sqrt", "²": "^2", "↳": "-", "≥": ">=", "≤": "<="}
)  # fmt: skip


def clean(text: str) -> str:
    """Return ``text`` on one line, with control characters shown as escapes."""
    text = _LINE_BREAKS.sub(" ", text)
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def bar(share: float, cells: int) -> str:
    """Return a bar of ``share`` (0..1) of ``cells`` blocks; a share above 0 gets half a block."""
    halves = round(min(max(share, 0.0), 1.0) * cells * 2)
    if share > 0:
        halves = max(halves, 1)
    return "█" * (halves // 2) + "▌" * (halves % 2)


def shorten(text: str, limit: int) -> str:
    """Cut ``text`` to ``limit`` characters in its middle, since names differ at their ends."""
    if len(text) <= limit:
        return text
    tail = (limit - 1) * 2 // 3
    return f"{text[: limit - 1 - tail]}…{text[-tail:]}"


def to_ascii(text: str) -> str:
    """Replace all that is not ASCII in ``text``, with look-alikes for bars and signs."""
    return text.translate(_ASCII).encode("ascii", "backslashreplace").decode("ascii")


def write_text(text: str, file: TextIO | None = None) -> None:
    """Write ``text`` to ``file`` or standard output, in ASCII where the encoding needs that."""
    file = sys.stdout if file is None else file
    try:
        text.encode(file.encoding or "utf-8")
    except UnicodeEncodeError:
        text = to_ascii(text)
    file.write(text)
    file.flush()
