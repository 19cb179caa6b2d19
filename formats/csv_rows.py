"""Where rows end in CSV bytes, and the rows of one byte range.

By RFC 4180 a line end within quotes is text. Bytes that begin at a row's start tell quoted from
unquoted exactly; bytes from the middle of a file do not, so a file cut into ranges must have no
line end within quotes. A range counts its quotes: one that was cut within quotes leaves an odd
number behind in the range before it, which is an error and never a wrong row.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence

import numpy as np

from pipeprof.errors import CorruptData
from pipeprof.formats.base import AHEAD, Buffer, Need, Range, check_length
from pipeprof.formats.compiled import kernels

_FIELD = re.compile(rb'(?:"[^"]*(?:""[^"]*)*(?:"|\Z))?[^,\r\n]*(?:,|\r|(\n)|\Z)')
_QUOTE = b'"'
_BEFORE_QUOTE = np.zeros(256, bool)
_BEFORE_QUOTE[list(b'",\r\n')] = True
"""By byte: whether a quote may open behind it."""
_MOST = 2**27
"""Bytes of a row: beyond, it is no CSV, and memory must stay bounded."""
_NOT_TO_BE_CUT = (
    "its quotes do not pair up where the file was cut: a field holds line ends, or a quote within "
    "unquoted text. Open it whole, with split_bytes=0."
)
_SLACK = 2**16
"""Read beyond a range in one go with its last block, for the row that ends there; of small blocks a
quarter of one."""


def first_row_end(data: Buffer) -> int:
    """Where the first row of ``data`` ends, its line end included; 0: not in ``data``."""
    return next((m.end() for m in _FIELD.finditer(data) if m[1]), 0)


def last_row_end(data: Buffer, cut: bool = False) -> int:
    """Where the last whole row of ``data`` ends, which begins with a row; 0: there is none.

    Raises `CorruptData` when the bytes were ``cut`` from a file, and their quotes show that they
    may begin within quotes.
    """
    if fields := kernels("pipeprof.formats.csv_fields"):
        end: int = fields.find_row_end(octets(data), len(data), np.empty(64, np.uint8))
        if end != fields.ODD:
            return end
    data = bytes(data)
    newline = data.rfind(b"\n")
    if newline < 0 or b'"' not in data:
        return newline + 1
    quotes = _quotes(data)
    if quotes is None:
        if cut:
            raise CorruptData(_NOT_TO_BE_CUT)
        return max((m.end() for m in _FIELD.finditer(data) if m[1]), default=0)
    while (before := int(np.searchsorted(quotes, newline))) % 2:  # within quotes
        newline = data.rfind(b"\n", 0, int(quotes[before - 1]))
    return newline + 1


def octets(data: Buffer) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    """As kernels want them: not to be written."""
    found = np.frombuffer(data, np.uint8)
    found.flags.writeable = False
    return found


def halves(rows: bytes) -> tuple[bytes, bytes] | None:
    """Whole rows as two parts of about the same size; ``None``: it is but one row."""
    end = last_row_end(rows[: len(rows) // 2]) or first_row_end(rows)
    return (rows[:end], rows[end:]) if 0 < end < len(rows) else None


def has_quotes(rows: Buffer) -> bool:
    if isinstance(rows, memoryview):  # which cannot be searched
        return any(_QUOTE in bytes(rows[at : at + _SLACK]) for at in range(0, len(rows), _SLACK))
    return _QUOTE in rows


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
    quotes = np.flatnonzero(view == ord(_QUOTE))
    opening = quotes[0::2]
    if len(opening) and opening[0] == 0:
        opening = opening[1:]
    return quotes if bool(_BEFORE_QUOTE[view[opening - 1]].all()) else None


def _newline(data: Buffer, start: int) -> int:
    """The first at or after ``start``; -1: there is none. Copies little of a large block."""
    for at in range(start, len(data), _SLACK):
        found = bytes(data[at : at + _SLACK]).find(b"\n")
        if found >= 0:
            return at + found
    return -1


class RowBuffer:
    """Blocks in, whole rows out. Holds a block and the row that it ends in, in memory that is used
    again: fresh memory for each block costs more than the copy."""

    def __init__(self, cut: bool) -> None:
        self._cut = cut
        """The bytes are a range of a file that was cut."""
        self._memory = bytearray()
        self._begin = self._end = 0
        """Of what was pushed and is in no rows yet."""
        self._wanted = 0

    def push(self, block: Buffer) -> Buffer:
        """The rows that ``block`` completes, there until the next push. Raises `CorruptData`."""
        self._append(block)
        if self._end < self._wanted and self._end <= _MOST:
            return b""
        newline = self._memory.rfind(b"\n", 0, self._end)
        if newline >= 0 and self._memory.find(_QUOTE, 0, self._end) < 0:
            self._begin = newline + 1
        else:
            self._begin = last_row_end(self._view(), self._cut)
        if self._end - self._begin > _MOST:
            raise CorruptData(f"a row is longer than {_MOST} bytes; this is not CSV.")
        # looked at again when it has doubled: a row of many blocks is not scanned for each
        self._wanted = 0 if self._begin else 2 * self._end
        return memoryview(self._memory)[: self._begin]

    def rest(self) -> bytes:
        """The rows left at the end; the last may lack its line end. Raises `CorruptData`."""
        data = bytes(self._view())
        self._begin = self._end = 0
        # a line end closes a row, but within quotes
        if b'"' in data and last_row_end(data + b"\n", self._cut) <= len(data):
            raise CorruptData(
                _NOT_TO_BE_CUT if self._cut else "the last row ends within quotes: it is truncated."
            )
        return data

    def _view(self) -> memoryview:
        return memoryview(self._memory)[self._begin : self._end]

    def _append(self, block: Buffer) -> None:
        held = self._view()
        begin, self._begin, self._end = self._begin, 0, len(held) + len(block)
        if self._end > len(self._memory):
            self._memory = bytearray(2 * len(held) + len(block) + _SLACK)
            begin = self._end
        if begin:
            memoryview(self._memory)[: len(held)] = held
        memoryview(self._memory)[len(held) : self._end] = block


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

    def read(self) -> Generator[Need, Sequence[Buffer] | None, Buffer]:
        """The next bytes, about a block; none after the last."""
        while not self._done and self._at < self._size:
            first, *after = self.upcoming(1 + AHEAD)
            buffers = yield Need((first,), tuple(after))
            assert buffers is not None  # a Need is always answered
            [data] = buffers
            check_length(data, *first)
            base = self._at
            self._at += len(data)
            begin = 0
            if not self._begun:
                begin = _newline(data, 0) + 1
                self._begun = begin > 0
                self._done = self._at >= self._end if begin == 0 else base + begin >= self._end
                if not begin or self._done:
                    continue
            if self._at >= self._end:
                newline = _newline(data, max(self._end - 1 - base, 0))
                self._done = newline >= 0
                data = data[: newline + 1] if self._done else data
            if begin < len(data):
                return memoryview(data)[begin:]
        return b""

    def upcoming(self, count: int) -> tuple[Range, ...]:
        """What is read next, for certain, at most ``count`` blocks; at least one."""
        ranges: list[Range] = []
        at = self._at
        while not ranges or (len(ranges) < count and at < min(self._end, self._size)):
            until, slack = at + self._block, min(_SLACK, self._block // 4)
            if at < self._end <= until + slack:
                until = self._end + slack
            until = min(until, self._size)
            ranges.append((at, until - at))
            at = until
        return tuple(ranges)
