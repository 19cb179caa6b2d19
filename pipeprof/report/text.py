"""Text for any medium: on one line, steering nothing, as wide as there is room."""

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
    """``text`` on one line, with what would steer a terminal shown as an escape."""
    text = _LINE_BREAKS.sub(" ", text)
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def bar(share: float, cells: int) -> str:
    """``share`` of ``cells`` blocks, to half a block; what is there at all gets half a block."""
    halves = round(min(max(share, 0.0), 1.0) * cells * 2)
    if share > 0:
        halves = max(halves, 1)
    return "█" * (halves // 2) + "▌" * (halves % 2)


def shorten(text: str, limit: int) -> str:
    """``text`` in at most ``limit`` characters; the middle goes, since names differ at the end."""
    if len(text) <= limit:
        return text
    tail = (limit - 1) * 2 // 3
    return f"{text[: limit - 1 - tail]}…{text[-tail:]}"


def to_ascii(text: str) -> str:
    """``text`` for a terminal that shows no more than ASCII; bars stay bars."""
    return text.translate(_ASCII).encode("ascii", "backslashreplace").decode("ascii")


def write_text(text: str, file: TextIO | None = None) -> None:
    """Write ``text`` to ``file`` (standard output), in ASCII where its encoding has no more."""
    file = sys.stdout if file is None else file
    try:
        text.encode(file.encoding or "utf-8")
    except UnicodeEncodeError:
        text = to_ascii(text)
    file.write(text)
    file.flush()
