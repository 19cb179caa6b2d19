"""Kernels: fields that `csv_fields` found → the values of one column.

Each takes bytes, ends, the column, of how many, and so many rows; writes a value for each row, and
in ``valid`` 0 where there is none; and gives the number of nulls, or `ODD` when there is a field
that it does not know for certain.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from pyarrow.csv import ConvertOptions

from pipeprof.formats.compiled import kernel
from pipeprof.formats.csv_fields import BYTES, ODD
from pipeprof.formats.csv_numbers import read_decimal, read_digits
from pipeprof.formats.csv_text import NULLS
from pipeprof.formats.vectors import get, load, pointer, store

_MINUS, _QUOTE, _RETURN, _SPACE, _TAB = ord("-"), ord('"'), ord("\r"), ord(" "), ord("\t")
_GREATEST = np.uint64(2**63 - 1)
_NOTHING = np.uint64(0)
_LOWER_CASE = np.uint64(0x202020)
COPIED = 8
"""Bytes at once: so many may be written behind the last text."""
_FIELDS = f"{BYTES}, i4[::1], i8, i8, i8"


def _words(texts: Any) -> Any:
    return np.array([int.from_bytes(text.encode(), "little") for text in texts], np.uint64)


_NULLS = _words(NULLS)
_TRUE, _FALSE = _words(ConvertOptions().true_values), _words(ConvertOptions().false_values)
_NAN, _INF = _words(["nan", "inf"])


@kernel()
def _field(data: Any, ends: Any, column: Any, columns: Any, row: Any) -> Any:
    """From where to where: without quotes, and without the return before a line end."""
    index = row * columns + column
    start, end = np.int64(get(ends, index)) + 1, np.int64(get(ends, index + 1))
    if column == columns - 1 and end > start and get(data, end - 1) == _RETURN:
        end -= 1
    if end - start > 1 and get(data, start) == _QUOTE:
        return start + 1, end - 1
    return start, end


@kernel()
def _word(data: Any, start: Any, end: Any) -> Any:
    """A field of up to eight bytes as one number, the first the lowest; of more, 1: no word that is
    looked for. A NUL within makes no word of it, nor one that it would be without."""
    word = np.uint64(end - start > 8)
    if not word:
        for at in range(start, end):
            if get(data, at) == 0:
                return np.uint64(1)
            word |= np.uint64(get(data, at)) << np.uint64(8 * (at - start))
    return word


@kernel()
def _is_one_of(word: Any, words: Any) -> Any:
    found = False
    for each in words:
        found |= word == each
    return found


@kernel()
def _is_null(data: Any, start: Any, end: Any) -> Any:
    return _is_one_of(_word(data, start, end), _NULLS)


@kernel()
def _without_blanks(data: Any, start: Any, end: Any) -> Any:
    while start < end and (get(data, start) == _SPACE or get(data, start) == _TAB):
        start += 1
    while start < end and (get(data, end - 1) == _SPACE or get(data, end - 1) == _TAB):
        end -= 1
    return start, end


@kernel()
def _signed_decimal(data: Any, size: Any, start: Any, end: Any) -> Any:
    """``(whether it is one, value)``."""
    negative = get(data, start) == _MINUS
    fine, value = read_decimal(data, size, start + negative, end)
    return fine, -value if negative else value


@kernel()
def _other_decimal(data: Any, size: Any, start: Any, end: Any) -> Any:
    """The same of what may have blanks around it, or be a word."""
    start, end = _without_blanks(data, start, end)
    fine, value = _signed_decimal(data, size, start, end)
    if fine:
        return True, value
    if _word(data, start, end) | _LOWER_CASE == _NAN:
        return True, np.nan
    negative = get(data, start) == _MINUS
    if _word(data, start + negative, end) | _LOWER_CASE == _INF:
        return True, -np.inf if negative else np.inf
    return False, 0.0


@kernel(*(f"i8({_FIELDS}, {kind}[::1], u1[::1])" for kind in ("f4", "f8")))
def read_floats(
    data: Any, ends: Any, column: Any, columns: Any, rows: Any, values: Any, valid: Any
) -> Any:
    """Rounded to float64, then to what ``values`` are."""
    data, size, ends = pointer(data), len(data), pointer(ends)
    nulls = 0
    for row in range(rows):
        start, end = _field(data, ends, column, columns, row)
        fine, value = _signed_decimal(data, size, start, end)
        if not fine and _is_null(data, start, end):
            valid[row] = 0
            nulls += 1
        elif not fine:
            fine, value = _other_decimal(data, size, start, end)
            if not fine:
                return ODD
        values[row] = value
    return nulls


@kernel()
def _signed_integer(data: Any, size: Any, start: Any, end: Any) -> Any:
    """``(whether it is one, value)`` of an int64."""
    negative = get(data, start) == _MINUS
    fine, value = read_digits(data, size, start + negative, end)
    fine &= value <= _GREATEST
    return fine, -np.int64(value) if negative else np.int64(value)


@kernel(f"i8({_FIELDS}, i8[::1], u1[::1])")
def read_integers(
    data: Any, ends: Any, column: Any, columns: Any, rows: Any, values: Any, valid: Any
) -> Any:
    data, size, ends = pointer(data), len(data), pointer(ends)
    nulls = 0
    for row in range(rows):
        start, end = _field(data, ends, column, columns, row)
        fine, value = _signed_integer(data, size, start, end)
        if not fine and _is_null(data, start, end):
            valid[row] = 0
            nulls += 1
        elif not fine:
            fine, value = _signed_integer(data, size, *_without_blanks(data, start, end))
            if not fine:
                return ODD
        values[row] = value
    return nulls


@kernel(f"i8({_FIELDS}, u1[::1], u1[::1])")
def read_flags(
    data: Any, ends: Any, column: Any, columns: Any, rows: Any, values: Any, valid: Any
) -> Any:
    """1 where it is true, 0 where it is false."""
    data, ends = pointer(data), pointer(ends)
    nulls = 0
    for row in range(rows):
        start, end = _field(data, ends, column, columns, row)
        word = _word(data, start, end)
        values[row] = _is_one_of(word, _TRUE)
        if not values[row] and not _is_one_of(word, _FALSE):
            if not _is_one_of(word, _NULLS):
                return ODD
            valid[row] = 0
            nulls += 1
    return nulls


@kernel(f"i8({_FIELDS})")
def count_text(data: Any, ends: Any, column: Any, columns: Any, rows: Any) -> Any:
    """Bytes of the column's fields, at most."""
    data, ends = pointer(data), pointer(ends)
    count = 0
    for row in range(rows):
        start, end = _field(data, ends, column, columns, row)
        count += end - start
    return count


@kernel(f"i8({_FIELDS}, i4[::1], u1[::1], b1)")
def read_text(
    data: Any,
    ends: Any,
    column: Any,
    columns: Any,
    rows: Any,
    offsets: Any,
    text: Any,
    escaped: Any,
) -> Any:
    """``offsets[0]`` says where in ``text`` to begin, which has room for all, and `COPIED` more.
    ``escaped``: two quotes within quotes are one."""
    data, size, ends = pointer(data), len(data), pointer(ends)
    to = np.int64(offsets[0])
    for row in range(rows):
        start, end = _field(data, ends, column, columns, row)
        if escaped:
            skip = False
            for at in range(start, end):
                skip = get(data, at) == _QUOTE and not skip
                if not skip:
                    text[to] = get(data, at)
                    to += 1
        elif end + COPIED <= size:
            for at in range(start, end, COPIED):
                store(pointer(text), to + at - start, load(data, at))
            to += end - start
        else:
            for at in range(start, end):
                text[to] = get(data, at)
                to += 1
        offsets[row + 1] = to
    return 0
