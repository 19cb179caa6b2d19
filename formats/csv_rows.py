"""Where rows end in CSV bytes, and the rows of one byte range.

By RFC 4180 a line end within quotes is text. Bytes that begin at a row's start tell quoted from
unquoted exactly; bytes from the middle of a file do not, so a file cut into ranges must have no
line end within quotes. A range counts its quotes: one that was cut within quotes leaves an odd
number behind in the range before it, which is an error and never a wrong row.
"""

from __future__ import annotations

import re

import numpy as np

from pipeprof.errors import CorruptData
from pipeprof.formats.base import Reading, fetch

_FIELD = re.compile(rb'(?:"[^"]*(?:""[^"]*)*(?:"|\Z))?[^,\r\n]*(?:,|\r|(\n)|\Z)')
_QUOTE = ord('"')
_BEFORE_QUOTE = np.frombuffer(b'",\r\n', np.uint8)
_MOST = 2**28
"""Bytes of a row: beyond, it is no CSV, and memory must stay bounded."""
_NOT_TO_BE_CUT = (
    "its quotes do not pair up where the file was cut: a field holds line ends, or a quote within "
    "unquoted text. Open it whole, with split_bytes=0."
)
_SLACK = 2**16
"""Read beyond a range in one go with its last block, for the row that ends there."""


def first_row_end(data: bytes) -> int:
    """Where the first row of ``data`` ends, its line end included; 0: not in ``data``."""
    return next((m.end() for m in _FIELD.finditer(data) if m[1]), 0)


def last_row_end(data: bytes, cut: bool = False) -> int:
    """Where the last whole row of ``data`` ends, which begins with a row; 0: there is none.

    Raises `CorruptData` when the bytes were ``cut`` from a file, and their quotes show that they
    may begin within quotes.
    """
    newline = data.rfind(b"\n")
    if newline < 0 or b'"' not in data:
        return newline + 1
    quotes = _quotes(data)
    if quotes is None:
        if cut:
            raise CorruptData(_NOT_TO_BE_CUT)
        return max((m.end() for m in _FIELD.finditer(data) if m[1]), default=0)
    before = int(np.searchsorted(quotes, newline))
    if before % 2:  # within quotes: before they open is outside again
        newline = data.rfind(b"\n", 0, int(quotes[before - 1]))
    return newline + 1


def may_be_cut(rows: bytes) -> bool:
    """Whether every line end of these rows ends a row, and each quote has its partner."""
    if b'"' not in rows:
        return True
    quotes = _quotes(rows)
    if quotes is None or len(quotes) % 2:
        return False
    newlines = np.flatnonzero(np.frombuffer(rows, np.uint8) == ord("\n"))
    return not bool((np.searchsorted(quotes, newlines) % 2).any())


def _quotes(data: bytes) -> np.ndarray[tuple[int], np.dtype[np.int64]] | None:
    """Where the quotes stand, when they open and close by turns; ``None`` when one that would
    open stands within text, and only reading field by field can tell."""
    view = np.frombuffer(data, np.uint8)
    quotes = np.flatnonzero(view == _QUOTE)
    opening = quotes[0::2]
    before = view[opening[opening > 0] - 1]
    return quotes if bool(np.isin(before, _BEFORE_QUOTE).all()) else None


class RowBuffer:
    """Blocks in, whole rows out. Holds a block and the row that it ends in."""

    def __init__(self, cut: bool) -> None:
        self._cut = cut
        """The bytes are a range of a file that was cut."""
        self._parts: list[bytes] = []
        self._held = 0
        self._wanted = 0

    def push(self, block: bytes) -> bytes:
        """The rows that ``block`` completes. Raises `CorruptData`."""
        self._parts.append(block)
        self._held += len(block)
        if self._held < self._wanted:
            return b""
        data = b"".join(self._parts)
        end = last_row_end(data, self._cut)
        if self._held - end > _MOST:
            raise CorruptData(f"a row is longer than {_MOST} bytes; this is not CSV.")
        self._parts = [data[end:]]
        self._held -= end
        # looked at again when it has doubled: a row of many blocks is not scanned for each
        self._wanted = 0 if end else 2 * self._held
        return data[:end]

    def rest(self) -> bytes:
        """The rows left at the end; the last may lack its line end. Raises `CorruptData`."""
        data = b"".join(self._parts)
        self._parts, self._held = [], 0
        # a line end closes a row, but within quotes
        if b'"' in data and last_row_end(data + b"\n", self._cut) <= len(data):
            raise CorruptData(
                _NOT_TO_BE_CUT if self._cut else "the last row ends within quotes: it is truncated."
            )
        return data


class Window:
    """The bytes of the rows that begin in a range of a file with no line end within quotes.

    Both ends move to the first line end at or after the byte before them, so that neighbours
    agree on which rows are whose without knowing of each other.
    """

    def __init__(self, start: int, end: int, size: int, block_bytes: int) -> None:
        self._at = max(start - 1, 0)
        self._end = end
        self._size = size
        self._block = block_bytes
        self._begun = start == 0
        self._done = False

    def read(self) -> Reading:
        """The next bytes, about a block; ``b""`` after the last."""
        while not self._done and self._at < self._size:
            data, base = (yield from fetch(self._at, self._next_length())), self._at
            self._at += len(data)
            begin = 0
            if not self._begun:
                begin = data.find(b"\n") + 1
                self._begun = begin > 0
                self._done = self._at >= self._end if begin == 0 else base + begin >= self._end
                if not begin or self._done:
                    continue
            if self._at >= self._end:
                newline = data.find(b"\n", max(self._end - 1 - base, 0))
                self._done = newline >= 0
                data = data[: newline + 1] if self._done else data
            if begin < len(data):
                return data[begin:]
        return b""

    def _next_length(self) -> int:
        until = self._at + self._block
        if until >= self._end:
            until = max(until, self._end + min(_SLACK, self._block))
        return min(until, self._size) - self._at
