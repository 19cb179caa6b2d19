"""Find where rows end in CSV bytes, and read the rows of one byte range.

By RFC 4180 a line end within quotes is text. In bytes that begin with a row, text within
quotes is recognised exactly. In bytes from the middle of a file it is not, so a file that is cut
into ranges must have no line end within quotes. Each range counts its quotes. A range that was
cut within quotes leaves an odd number in the range before it: that is an error, and never a wrong
row.
"""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt

from pipeprof.errors import CorruptData
from pipeprof.formats.base import Buffer
from pipeprof.formats.lines import last_newline, past_line_end

_FIELD = re.compile(rb'(?:"[^"]*(?:""[^"]*)*(?:"|\Z))?[^,\r\n]*(?:,|\r|(\n)|\Z)')
_QUOTE = ord('"')
_MAY_PRECEDE_QUOTE = np.zeros(256, bool)
"""For each byte, whether a quote may open behind it."""
_MAY_PRECEDE_QUOTE[list(b'",\r\n')] = True
_MOST_ROW_BYTES = 2**27
"""The longest row. Longer data is no CSV, and memory must stay bounded."""
_NOT_TO_BE_CUT = (
    "its quotes do not pair up where the file was cut: a field holds line ends, or a quote within "
    "unquoted text. Open it whole, with split_bytes=0."
)
_SCANNED_AT_ONCE = 2**16
"""Bytes that are searched for quotes at a time, so that they stay in the processor's cache."""


def first_row_end(data: Buffer) -> int:
    """Return where the first row of ``data`` ends, line end included; 0 if it does not end
    there."""
    return next((m.end() for m in _FIELD.finditer(data) if m[1]), 0)


def last_row_end(data: Buffer, cut: bool = False) -> int:
    """Return where the last whole row of ``data`` ends; 0 if there is none. ``data`` begins with a
    row.

    Raises `CorruptData` for data ``cut`` from a file whose quotes show that it may begin within
    quotes.
    """
    newline = last_newline(data, len(data))
    quotes = _quotes(data)
    if newline < 0 or not len(quotes):
        return newline + 1
    if not _open_and_close(data, quotes):
        if cut:
            raise CorruptData(_NOT_TO_BE_CUT)
        return max((m.end() for m in _FIELD.finditer(data) if m[1]), default=0)
    while (before := int(np.searchsorted(quotes, newline))) % 2:  # within quotes
        newline = last_newline(data, int(quotes[before - 1]))
    return newline + 1


def halves(rows: Buffer) -> tuple[Buffer, Buffer] | None:
    """Return whole rows as two parts of about the same size; ``None`` for a single row."""
    end = last_row_end(rows[: len(rows) // 2]) or first_row_end(rows)
    return (rows[:end], rows[end:]) if 0 < end < len(rows) else None


def may_be_cut(rows: bytes) -> bool:
    """Return whether every line end of these rows ends a row, and each quote has its partner."""
    quotes = _quotes(rows)
    if len(quotes) % 2 or not _open_and_close(rows, quotes):
        return False
    newlines = np.flatnonzero(np.frombuffer(rows, np.uint8) == ord("\n"))
    return not bool((np.searchsorted(quotes, newlines) % 2).any())


def _quotes(data: Buffer) -> npt.NDArray[np.int64]:
    """Return the offsets of all quotes."""
    octets, scratch = np.frombuffer(data, np.uint8), np.empty(_SCANNED_AT_ONCE, bool)
    found = [np.empty(0, np.int64)]
    for at in range(0, len(octets), _SCANNED_AT_ONCE):
        some = octets[at : at + _SCANNED_AT_ONCE]
        is_quote = np.equal(some, _QUOTE, out=scratch[: len(some)])
        if is_quote.any():
            found.append(np.flatnonzero(is_quote) + at)
    return np.concatenate(found)


def _open_and_close(data: Buffer, quotes: npt.NDArray[np.int64]) -> bool:
    """Return whether quotes open and close alternately. A quote within unquoted text makes that
    undecidable; only parsing field by field can tell."""
    opening = quotes[0::2]
    if len(opening) and opening[0] == 0:
        opening = opening[1:]
    return bool(_MAY_PRECEDE_QUOTE[np.frombuffer(data, np.uint8)[opening - 1]].all())


def check_begin(data: Buffer) -> None:
    """Raises `CorruptData` if the first quotes show that ``data`` begins within quotes."""
    some = data[:_SCANNED_AT_ONCE]
    if not _open_and_close(some, _quotes(some)):
        raise CorruptData(_NOT_TO_BE_CUT)


class RowBuffer:
    """Takes blocks and gives whole rows, as pieces that are views of the blocks.

    To look for quotes takes a fifth of the time that parsing takes. So rows are taken to end at the
    last line end, until the parser finds that one was within quotes: see `cut_again`.
    """

    def __init__(self, cut: bool) -> None:
        self.rows: list[Buffer] = []
        """What the blocks completed. The caller empties it when it has used them."""
        self._cut = cut
        """Whether the bytes are a range of a file that was cut."""
        self._rest = bytearray()
        """The bytes behind ``rows``."""
        self._exact = self._ended = False
        """Whether quotes are looked for; whether there are no more blocks."""
        self._wanted = 0

    def push(self, block: Buffer) -> None:
        """Append ``block``. Raises `CorruptData`."""
        if self._exact:
            self._rest += block
            # looked at again when it has doubled: a row of many blocks is not scanned for each
            if len(self._rest) >= min(self._wanted, _MOST_ROW_BYTES):
                self.cut_again()
        elif first := past_line_end(block, 0):
            end = last_newline(block, len(block)) + 1
            self.rows += self._rest + block[:first], memoryview(block)[first:end]
            self._rest = bytearray(block[end:])
        else:
            self._rest += block
        self._check_length()

    def finish(self) -> None:
        """Give the last rows; the very last may lack its line end. Raises `CorruptData`."""
        self._ended = True
        if self._rest:
            self.rows.append(self._rest if self._rest.endswith(b"\n") else self._rest + b"\n")
            self._rest = bytearray()
        if self._exact:
            self.cut_again()

    def cut_again(self) -> None:
        """End ``rows`` at the last line end that is not within quotes. From now on quotes are
        looked for. Raises `CorruptData`."""
        self._exact = True
        data = b"".join([*self.rows, self._rest])
        end = last_row_end(data, self._cut)
        self.rows, self._rest = [data[:end]] if end else [], bytearray(data[end:])
        self._wanted = 0 if end else 2 * len(self._rest)
        if self._ended and self._rest:
            raise CorruptData(
                _NOT_TO_BE_CUT if self._cut else "the last row ends within quotes: it is truncated."
            )
        self._check_length()

    def take_row(self) -> bytes:
        """Take the first row; nothing if it does not end yet. Raises `CorruptData`."""
        if not first_row_end(self.rows[0]):  # the first piece is a line
            self.cut_again()
        if not self.rows:
            return b""
        first = memoryview(self.rows[0])
        end = first_row_end(first)
        self.rows = [each for each in (first[end:], *self.rows[1:]) if len(each)]
        return bytes(first[:end])

    def take(self) -> tuple[bytes, bool]:
        """Take all rows; the flag says whether each of them is one line. Raises `CorruptData`."""
        lines = may_be_cut(b"".join(self.rows))
        if not lines:
            self.cut_again()
        rows, self.rows = b"".join(self.rows), []
        return rows, lines

    def _check_length(self) -> None:
        if len(self._rest) > _MOST_ROW_BYTES:
            raise CorruptData(f"a row is longer than {_MOST_ROW_BYTES} bytes; this is not CSV.")
