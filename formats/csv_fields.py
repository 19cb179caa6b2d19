"""Kernels: where the fields of CSV end, 64 bytes at a time.

A bit for each byte says whether it is a comma, a line end, a quote; counting quotes by an
exclusive or over all bits before tells which stand within quotes. That is right when each quote
that opens stands at a field's start, or behind one that closes (`""` is a quote within quotes), and
each that closes at a field's end. Where that does not hold, the bytes are `ODD`: somebody else must
look at them field by field.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pipeprof.formats.compiled import kernel
from pipeprof.formats.vectors import (
    first_one,
    get,
    ones,
    pointer,
    which_are,
    which_are_beyond_ascii,
    zeros_before,
)

ODD = -1
ESCAPED, FOREIGN = 0, 1
"""Places in ``seen``: whether there is a quote within quotes; a byte that is not ASCII."""
BYTES = "Array(u1, 1, 'C', readonly=True)"
_ALL = np.uint64(2**64 - 1)
_ONE, _NONE = np.uint64(1), np.uint64(0)
_TOP = np.uint64(63)

_commas, _line_ends = which_are(ord(",")), which_are(ord("\n"))
_quotes, _returns, _foreign = which_are(ord('"')), which_are(ord("\r")), which_are_beyond_ascii


@kernel()
def _looked_up(start: Any, at: Any) -> Any:
    """Commas, line ends, quotes and carriage returns, and what is not ASCII, as bits."""
    quotes, returns, foreign = _quotes(start, at), _returns(start, at), _foreign(start, at)
    return _commas(start, at), _line_ends(start, at), quotes, returns, foreign


@kernel()
def _look(data: Any, size: Any, at: Any, stop: Any, rest: Any) -> Any:
    """The same of ``data[at : min(at + 64, stop)]``, by way of ``rest`` at the very end."""
    if at + 64 <= size:
        commas, line_ends, quotes, returns, foreign = _looked_up(data, at)
    else:
        for index in range(size - at):
            rest[index] = get(data, at + index)
        commas, line_ends, quotes, returns, foreign = _looked_up(pointer(rest), 0)
    if at + 64 > stop:
        kept = (_ONE << np.uint64(stop - at)) - _ONE
        return commas & kept, line_ends & kept, quotes & kept, returns & kept, foreign & kept
    return commas, line_ends, quotes, returns, foreign


@kernel()
def _outside(commas: Any, line_ends: Any, quotes: Any, returns: Any, state: Any) -> Any:
    """Ends of fields and of rows outside quotes, and which bytes are `ODD` or escapes.

    ``state`` is what the byte before was: within quotes; one behind which a quote may open; a quote
    that closes; a carriage return.
    """
    within, fresh, closed, returned = state
    inside = quotes
    for shift in (1, 2, 4, 8, 16, 32):
        inside ^= inside << np.uint64(shift)
    inside ^= within
    opens, closes = quotes & inside, quotes & ~inside
    ends, rows, returns = (commas | line_ends) & ~inside, line_ends & ~inside, returns & ~inside
    escapes = opens & (closes << _ONE | closed)
    odd = opens & ~(ends << _ONE | fresh) & ~escapes
    odd |= (closes << _ONE | closed) & ~(ends | returns | opens)
    odd |= (returns << _ONE | returned) & ~rows
    within = _ALL if inside >> _TOP else _NONE
    return ends, rows, odd, escapes, (within, ends >> _TOP, closes >> _TOP, returns >> _TOP)


@kernel(f"i8({BYTES}, i8, i8, i8, i4[::1], b1[::1], u1[::1])")
def find_fields(
    data: Any, start: Any, stop: Any, columns: Any, ends: Any, seen: Any, rest: Any
) -> Any:
    """Rows that are whole in ``data[start:stop]``, which begins with one, or `ODD`.

    Field i of them is ``data[ends[i] + 1 : ends[i + 1]]``, a carriage return at a row's end
    included. ``ends`` has room for ``2 * columns + 66`` or more; when it is full, more rows wait.
    ``rest`` are 64 bytes to work with.
    """
    begin, size = pointer(data), len(data)
    state = (_NONE, _ONE, _NONE, _NONE)
    ends[0] = start - 1
    found, lines, at = 0, 0, start
    odd, escapes, foreign = _NONE, _NONE, _NONE
    while at < stop and found + 64 < len(ends):
        commas, line_ends, quotes, returns, others = _look(begin, size, at, stop, rest)
        foreign |= others
        if quotes | returns | state[0] | state[2] | state[3]:
            left, rows, wrong, doubled, state = _outside(commas, line_ends, quotes, returns, state)
            odd, escapes = odd | wrong, escapes | doubled
        else:
            left, rows = commas | line_ends, line_ends
            state = (_NONE, left >> _TOP, _NONE, _NONE)
        lines += ones(rows)
        while left:
            found += 1
            ends[found] = at + first_one(left)
            left &= left - _ONE
        at += 64
    seen[ESCAPED] |= escapes != 0
    seen[FOREIGN] |= foreign != 0
    whole = 0
    while (whole + 1) * columns <= found and data[ends[(whole + 1) * columns]] == 10:
        whole += 1
    # as many line ends as rows: no other field ends a line. A row without an end is too long
    too_long = whole == 0 and found >= columns
    return ODD if odd or lines != whole or too_long else whole


@kernel(f"i8({BYTES}, i8, u1[::1])")
def find_row_end(data: Any, stop: Any, rest: Any) -> Any:
    """Where the last whole row of ``data[:stop]`` ends; 0: there is none; or `ODD`."""
    begin, size = pointer(data), len(data)
    state = (_NONE, _ONE, _NONE, _NONE)
    end, odd = 0, _NONE
    for at in range(0, stop, 64):
        commas, line_ends, quotes, returns, _ = _look(begin, size, at, stop, rest)
        _, rows, wrong, _, state = _outside(commas, line_ends, quotes, returns, state)
        odd |= wrong
        if rows:
            end = at + 64 - zeros_before(rows)
    return ODD if odd else end
