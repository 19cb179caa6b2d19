"""Find line ends, and read the lines of one byte range of a file."""

from __future__ import annotations

import re
from collections.abc import Callable

from pipeprof.errors import CorruptData
from pipeprof.formats.base import PREFETCH_DEPTH, Buffer, ByteRange, Fetching, fetch

BOM = b"\xef\xbb\xbf"
"""The mark of UTF-8 with which some files of text begin."""
MOST_LINE_BYTES = 2**27
"""The longest line, as memory must stay bounded."""
_LINE_END = re.compile(rb"\n")
_SLACK = 2**16
"""Bytes that are read beyond a range with its last block, for the line that ends there; a quarter
of a small block."""


def past_line_end(data: Buffer, start: int) -> int:
    """Return the offset behind the first line end at or after ``start``; 0 if there is none."""
    found = _LINE_END.search(data, start)
    return found.end() if found else 0


def last_newline(data: Buffer, end: int) -> int:
    """Return the offset of the last line end before ``end``; -1 if there is none. Copies little."""
    for at in range(end, 0, -_SLACK):
        begin = max(at - _SLACK, 0)
        found = bytes(data[begin:at]).rfind(b"\n")
        if found >= 0:
            return begin + found
    return -1


class LineBuffer:
    """Takes blocks and gives whole lines."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def push(self, block: Buffer) -> bytes:
        """Append ``block``, and return the lines that it completes. Raises `CorruptData`."""
        end = last_newline(block, len(block)) + 1
        lines = b"".join((self._rest, block[:end])) if end else b""
        if end:
            self._rest.clear()
        self._rest += block[end:]
        if len(self._rest) > MOST_LINE_BYTES:
            raise CorruptData(f"a line is longer than {MOST_LINE_BYTES} bytes.")
        return lines

    def finish(self) -> bytes:
        """Return the last line, if it lacks its line end."""
        return bytes(self._rest) + b"\n" if self._rest else b""


class Window:
    """The bytes of the lines that begin in a range of a file.

    Both ends move to the first line end at or after the byte before them. So neighbours agree on
    the owner of each line without knowing of each other.
    """

    def __init__(
        self,
        start: int,
        end: int,
        size: int,
        block_bytes: int,
        check_begin: Callable[[Buffer], object] = bool,
    ) -> None:
        """``check_begin`` is called with the first bytes of a range, and raises where it may begin
        within a row."""
        self._at = max(start - 1, 0)
        self._end = end
        self._size = size
        self._block = block_bytes
        self._check_begin = check_begin
        self._begun = start == 0
        self._done = False

    def read(self) -> Fetching:
        """Return the next bytes, about a block; none after the last."""
        while not self._done and self._at < self._size:
            first, *after = self.upcoming(1 + PREFETCH_DEPTH)
            data = yield from fetch(*first, tuple(after))
            base = self._at
            self._at += len(data)
            begin = 0
            if not self._begun:
                begin = past_line_end(data, 0)
                self._begun = begin > 0
                self._done = (base + begin if begin else self._at) >= self._end
                if not begin or self._done:
                    continue
                self._check_begin(memoryview(data)[begin:])
            if self._at >= self._end:
                end = past_line_end(data, max(self._end - 1 - base, 0))
                self._done = end > 0
                data = data[:end] if end else data
            if begin < len(data):
                return memoryview(data)[begin:]
        return b""

    def upcoming(self, count: int) -> tuple[ByteRange, ...]:
        """Return at most ``count`` blocks, at least one, that are certain to be read next."""
        ranges: list[ByteRange] = []
        at = self._at
        while not ranges or (len(ranges) < count and at < min(self._end, self._size)):
            until, slack = at + self._block, min(_SLACK, self._block // 4)
            if at < self._end <= until + slack:
                until = self._end + slack
            until = min(until, self._size)
            ranges.append((at, until - at))
            at = until
        return tuple(ranges)
