"""Records of `tf.train.Example` read one after another by compiled code.

The form is that of `pipeprof.formats.example_scan`, with lists and values of any length. Whatever
is not of it ends the walk, so that nothing is accepted here that protobuf would not accept; bytes
are read up to 16 beyond a record, which `pipeprof.formats.framing.Records` has.

An entry's key is compared with the one in the same place of the record before; where writers keep
no order, it is looked up among all keys met so far, of which those asked for are the first.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pipeprof.formats.compiled import kernel
from pipeprof.formats.example_names import KEY_WORDS, MOST_KEYS, empty_table, is_key, number_of
from pipeprof.formats.example_scan import (
    EMPTY,
    FLOAT,
    FORM,
    FORM_OF_0,
    FORM_OF_1,
    GOES_ON,
    INT,
    KINDS,
    LONGEST,
    TAG,
)
from pipeprof.formats.vectors import first_one, get, load, pointer
from pipeprof.formats.words import HIGH, MASKS

__all__ = ["KEY_WORDS", "empty_table", "gather", "ints", "walk"]

_TOO_LONG = 2**62
_1, _7, _16, _32 = (np.uint64(bits) for bits in (1, 7, 16, 32))
_14, _28, _56, _63 = (np.uint64(bits) for bits in (14, 28, 56, 63))
_PAIRS, _FOURS = np.uint64(0x00003FFF00003FFF), np.uint64(0x000000000FFFFFFF)
_SEVENS, _127 = np.uint64(0x007F007F007F007F), np.uint64(127)

_OCTETS = "Array(uint8, 1, 'C', readonly=True)"
_PLACES = "Array(int64, 1, 'A', readonly=True)"


@kernel()
def _length(data: Any, at: int) -> Any:
    """The length that is told there, and where what it counts begins."""
    length = np.int64(get(data, at))
    if length < 128:
        return length, at + 1
    length &= 127
    for byte in range(1, 4):
        more = np.int64(get(data, at + byte))
        length |= (more & 127) << 7 * byte
        if more < 128:
            return length, at + byte + 1
    return np.int64(_TOO_LONG), at + 4


@kernel()
def _content(data: Any, at: int, stop: int) -> Any:
    """Of ``12 len kind len 0a len`` and what is behind, up to ``stop``: the kind, where the values
    begin, and how many bytes they take. Kind 0: it is of another form."""
    left = stop - at
    form = load(data, at)
    usual = (form & FORM) == np.uint64(left) * FORM_OF_1 + FORM_OF_0
    if usual and 6 <= left <= LONGEST:
        return KINDS[np.int64((form >> _16) & np.uint64(255))], at + 6, left - 6
    none = np.uint8(0), at, np.int64(0)
    if left < 4 or get(data, at) != 0x12:
        return none
    size, at = _length(data, at + 1)
    if at + size != stop or size == 0:
        return none
    kind = KINDS[get(data, at)]
    size, at = _length(data, at + 1)
    if at + size != stop:
        return none
    if size == 0:
        return np.uint8(kind | EMPTY) if kind else kind, at, size
    tag = get(data, at)
    size, at = _length(data, at + 1)
    if tag != TAG or at + size != stop:
        return none
    return kind, at, size


@kernel()
def _joined(word: Any) -> Any:
    """`pipeprof.formats.words.join_sevens` of one."""
    word = (word & _SEVENS) | ((word >> _1) & (_SEVENS << _7))
    word = (word & _PAIRS) | ((word >> np.uint64(2)) & (_PAIRS << _14))
    return (word & _FOURS) | ((word >> np.uint64(4)) & (_FOURS << _28))


@kernel()
def _int(data: Any, at: int, size: int) -> Any:
    """The number in so many bytes, and whether they are one, and end with it."""
    word = load(data, at)
    if size <= 8:
        word &= MASKS[size]
        return _joined(word), (word & HIGH) == GOES_ON[size]
    number, taken = _long(data, at)
    return number, (word & HIGH) == HIGH and taken == size


@kernel()
def _long(data: Any, at: int) -> Any:
    """A number of which eight bytes go on, and how many it takes; 0: it is of another form.
    What is negative takes ten, of which the last is a 1."""
    rest = load(data, at + 8)
    number = _joined(load(data, at)) | (rest & _127) << _56
    if (rest & np.uint64(0x80)) == 0:
        return number, 9
    if (rest & np.uint64(0xFF80)) == np.uint64(0x0180):
        return number | _1 << _63, 10
    return number, 0


@kernel()
def _are_ints(data: Any, at: int, size: int) -> Any:
    """Whether these bytes are whole numbers, of up to nine bytes or negative."""
    goes_on = 0
    for byte in range(at, at + size):
        if get(data, byte) < 128:
            if goes_on > 9 or (goes_on == 9 and get(data, byte) != 1):
                return False
            goes_on = 0
        else:
            goes_on += 1
    return goes_on == 0


@kernel()
def _cell(data: Any, at: int, size: int, kind: int, asked: bool, is_list: bool) -> Any:
    """What is noted of these bytes, and whether a column may have them. Of one that nobody asked
    for only their form is looked at; in one of lists numbers are counted later."""
    place = np.uint64(at) << _32 | np.uint64(size)
    if kind == INT:
        number, one = _int(data, at, size)
        if not one:
            return place, is_list if asked else _are_ints(data, at, size)
        return place if is_list else number, True
    if kind == FLOAT:
        value = place if is_list else load(data, at) & MASKS[4]
        return value, not size & 3 and (size == 4 or is_list or not asked)
    return place, True


@kernel(
    f"b1({_OCTETS}, {_PLACES}, {_PLACES}, {_OCTETS}, i8[::1], b1[::1], u8[::1], i8[::1], i8[::1], "
    "u1[:, ::1], u8[:, ::1])"
)
def walk(
    octets: Any,
    starts: Any,
    stops: Any,
    names: Any,
    lengths: Any,
    lists: Any,
    known: Any,
    sizes: Any,
    slots: Any,
    code: Any,
    bits: Any,
) -> bool:
    """Fill ``code`` and ``bits`` [names, rows], as `pipeprof.formats.example_cells.Cells` has
    them, for the columns with these ``names`` of so many bytes, each with zeros up to `KEY_WORDS`,
    of which some are ``lists``. The three that follow are an `empty_table`. Whether all could be
    read."""
    asked, keys = len(lengths), 0
    order = np.zeros(MOST_KEYS, np.int64)
    data, table = pointer(octets), (pointer(known), pointer(sizes), pointer(slots))
    for name in range(asked):
        at = name * KEY_WORDS * 8
        found, keys = number_of(pointer(names), at, lengths[name], False, keys, table)
        if found != name:
            return False
    for row in range(len(starts)):
        at, end = starts[row], stops[row]
        if at == end:
            continue  # an Example of no bytes has no entries
        size, body = _length(data, at + 1)
        if get(data, at) != TAG or body + size != end:
            return False
        at, place = body, 0
        while at < end:
            size, body = _length(data, at + 1)
            stop = body + size
            length = np.int64(get(data, body + 1))
            if get(data, at) != TAG or stop > end or get(data, body) != TAG or length > 127:
                return False
            at = body + 2
            if at + length > stop or max(place, keys) == MOST_KEYS:
                return False
            found = order[place]
            if not is_key(data, at, length, found, table):
                found, keys = number_of(data, at, length, True, keys, table)
                if found < 0:
                    return False
                order[place] = found
            place += 1
            kind, at, size = _content(data, at + length, stop)
            if kind == 0:
                return False
            is_list = found < asked and lists[found]
            value, fine = _cell(data, at, size, kind, found < asked, is_list)
            if not fine:
                return False
            if found < asked:
                if code[found, row]:
                    return False  # a record holds a name twice
                code[found, row], bits[found, row] = kind, value
            at = stop
    return True


@kernel(f"i8({_OCTETS}, u8[::1], i8[::1], u8[::1])")
def ints(octets: Any, cells: Any, counts: Any, numbers: Any) -> int:
    """The numbers in the bytes of ``cells`` (place << 32 | bytes), as many as they are, and how
    many are in each cell. In all; -1: some bytes are not of the form."""
    data, to = pointer(octets), 0
    for cell in range(len(cells)):
        at = np.int64(cells[cell] >> _32)
        stop = at + np.int64(cells[cell] & MASKS[4])
        first = to
        while at < stop:
            word = load(data, at)
            ends = ~word & HIGH
            if ends == 0:
                number, taken = _long(data, at)
                if taken == 0:
                    return -1
                numbers[to] = number
                at += taken
            else:
                end = np.uint64(first_one(ends))
                numbers[to] = _joined(word & ((_1 << end) - _1))
                at += np.int64(end + _1) >> 3
            to += 1
        if at != stop:
            return -1
        counts[cell] = to - first
    return to


@kernel(f"void({_OCTETS}, u8[::1], u1[::1])")
def gather(octets: Any, cells: Any, found: Any) -> None:
    """The bytes of ``cells`` (place << 32 | bytes) end to end."""
    data, to = pointer(octets), 0
    for cell in range(len(cells)):
        at = np.int64(cells[cell] >> _32)
        for byte in range(np.int64(cells[cell] & MASKS[4])):
            found[to + byte] = get(data, at + byte)
        to += np.int64(cells[cell] & MASKS[4])
