"""Many small `tf.train.Example` records read in step, with NumPy and without building messages.

A record is nested fields, each a tag byte and a length before its bytes:

    0a len Features | 0a len entry | 0a len key | 12 len Feature | kind len list | 0a len values

First all records are walked together, an entry a step, so that every entry's place is known; then
all entries are read at once, whatever their order. What this reads is the form that writers make.
An entry with another value is left to protobuf (`ODD`); a block with anything else is refused, so
that nothing is accepted here that protobuf would not accept.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pipeprof.formats.base import Buffer
from pipeprof.formats.example_keys import keys_of
from pipeprof.formats.framing import Records
from pipeprof.formats.words import HIGH, MASKS, Places, Words, join_sevens, spans_of, words_of

Octets = npt.NDArray[np.uint8]

BYTES, FLOAT, INT = 1, 2, 4
"""The kinds; each code is a bit, so that all codes of a column or-ed say which there are."""
EMPTY = 8
"""Beside a kind: the list is there and holds nothing."""
ODD = 16
"""Not of the usual form, or several values where one is expected."""

TAG = 0x0A
KINDS = np.zeros(256, np.uint8)
KINDS[[0x0A, 0x12, 0x1A]] = BYTES, FLOAT, INT
_AROUND = 6
"""Bytes of `12 len kind len 0a len` before a value, each length one byte."""
LONGEST = 129
"""With its value: more would take a length of two bytes."""
FORM = np.uint64(0xFFFFFF00FFFF)
"""All of them but the kind."""
FORM_OF_0 = np.uint64(((0x0A00000012) - (2 << 8) - (4 << 24) - (6 << 40)) % 2**64)
FORM_OF_1 = np.uint64(1 << 8 | 1 << 24 | 1 << 40)
"""What each byte in all adds to the three lengths."""
_MOST_STEPS = 10_000
"""Entries of one record: a step costs the same for the last record that has more as for all."""
GOES_ON: Words = np.concatenate([[~np.uint64(0)], HIGH & MASKS[:-1]])
"""By bytes of a varint: the bits that say it goes on. No word looks like that of 0 bytes."""


class Refused(Exception):
    """Not of the form that is read here: ask protobuf."""


@dataclass(frozen=True)
class Entries:
    """All entries of a block, in no order; each array of shape (entries,)."""

    data: Buffer
    row: Places
    column: Places
    """Place among the names asked for; as many as there are names: none of them."""
    code: npt.NDArray[np.uint8]
    """A kind, with `EMPTY` or not, or `ODD`."""
    bits: Words
    """Of one int or float in a column of single values; else, and of bytes, where they are in
    ``data``: place << 32 | bytes."""
    value: Places
    """Where the Feature begins."""
    stop: Places
    """Where it ends."""


def scan(records: Records, names: tuple[str, ...], lists: tuple[bool, ...]) -> Entries:
    """``lists``: which of the names are columns of lists. Raises `Refused`."""
    data = records.data
    octets, words = np.frombuffer(data, np.uint8), words_of(data)
    row, body, stop = _walk(octets, words, records.starts, records.stops)
    lengths = octets[body + 1].astype(np.int64)
    after = body + 2 + lengths
    left = stop - after
    require(bool((octets[body] == TAG).all() and (lengths < 128).all() and (left >= 2).all()))
    column, ascii_only = keys_of(names).find(words, body + 2, lengths)
    require(ascii_only)  # protobuf refuses a key that is not UTF-8
    code, at, size, value = _contents(words, after, left)
    one, bits = _singles(words, code, at, size)
    several = np.array([*lists, False])[column]
    spanned = np.flatnonzero(several | (code == BYTES))
    bits[spanned] = spans_of(at[spanned], size[spanned])
    # several values of a column of lists are looked at later, and those that nobody asked for
    # can only be damaged where they are ints
    other = np.flatnonzero(~one)
    fits = (column[other] == len(names)) & (code[other] == FLOAT) | several[other]
    fits &= (code[other] != FLOAT) | (size[other] % 4 == 0)
    code[other[~fits & (code[other] & EMPTY == 0)]] = ODD
    return Entries(data, row, column, code, bits, value, stop)


def _walk(
    octets: Octets, words: Words, starts: Places, stops: Places
) -> tuple[Places, Places, Places]:
    """Of each entry its row, and where what its length counts begins and ends."""
    row = np.flatnonzero(starts < stops)  # an Example of no bytes has no entries
    at, end = starts[row], stops[row]
    tags = [at]
    at, stop = _field(octets, words, at)
    require(np.array_equal(stop, end))
    rows, bodies, ends = [row[:0]], [at[:0]], [at[:0]]
    while True:
        more = at < end
        if not more.all():
            require(bool((at <= end).all()))
            row, at, end = row[more], at[more], end[more]
            if not len(at):
                break
        require(len(tags) <= _MOST_STEPS)
        body, stop = _field(octets, words, at)
        tags.append(at)
        rows.append(row)
        bodies.append(body)
        ends.append(stop)
        at = stop
    require(bool((octets[np.concatenate(tags)] == TAG).all()))
    return np.concatenate(rows), np.concatenate(bodies), np.concatenate(ends)


def _field(octets: Octets, words: Words, at: Places) -> tuple[Places, Places]:
    """Where the bytes of the fields begin and end whose tags are ``at``."""
    length = octets[at + 1].astype(np.int64)
    body = at + 2
    if length.max(initial=0) > 127:
        length, size, whole = _length(words[at + 1])
        require(bool(whole.all()))
        body = at + 1 + size
    return body, body + length


def _length(words: Words) -> tuple[Places, Places, npt.NDArray[np.bool_]]:
    """The lengths that these words begin with, how many bytes each takes, and whether they are no
    more than 4."""
    size = np.ones(len(words), np.int64)
    goes_on = np.ones(len(words), bool)
    for byte in range(4):
        goes_on &= (words >> np.uint64(8 * byte + 7) & np.uint64(1)).astype(bool)
        size += goes_on
    return join_sevens(words & MASKS[size]).astype(np.int64), size, ~goes_on


def _contents(words: Words, after: Places, left: Places) -> tuple[Octets, Places, Places, Places]:
    """Of the ``left`` bytes that follow each key: code, where the values begin and how many bytes
    they take, and where the Feature begins."""
    form, value = words[after], after + 2
    # fewer than six bytes make a length negative, and so a number beyond any form
    usual = form & FORM == left.astype(np.uint64) * FORM_OF_1 + FORM_OF_0
    usual &= left <= LONGEST
    code = np.where(usual, KINDS[(form >> np.uint64(16)).astype(np.uint8)], np.uint8(0))
    at, size = after + _AROUND, left - _AROUND
    other = np.flatnonzero(~usual)
    if len(other):
        found = _other_contents(words, after[other], after[other] + left[other])
        code[other], at[other], size[other], value[other] = found
    code[code == 0] = ODD
    return code, at, size, value


def _other_contents(
    words: Words, after: Places, stop: Places
) -> tuple[Octets, Places, Places, Places]:
    """The same where nothing is there, or a length takes more than a byte."""
    value, ends, tag, whole = _nested(words, after)
    require(bool(((tag == 0x12) & whole & (ends == stop)).all()))
    listed, ends, kind, whole = _nested(words, value)
    good = whole & (value < stop) & (ends == stop)
    at, ends, tag, whole = _nested(words, listed)
    empty = good & (listed == stop)
    good &= whole & (tag == TAG) & (ends == stop)
    code = np.where(good | empty, KINDS[kind], np.uint8(0))
    code[empty & (code > 0)] |= EMPTY
    return code, at, stop - at, value


def _nested(words: Words, at: Places) -> tuple[Places, Places, Octets, npt.NDArray[np.bool_]]:
    """Of the fields there: where their bytes begin and end, their tags, and whether their lengths
    are short enough to be read."""
    form = words[at]
    length, size, whole = _length(form >> np.uint64(8))
    body = at + 1 + size
    return body, body + length, form.astype(np.uint8), whole


def _singles(
    words: Words, code: Octets, at: Places, size: Places
) -> tuple[npt.NDArray[np.bool_], Words]:
    """Which entries hold one value and no more, and that value of an int or a float."""
    bits = words[at] & MASKS[4]
    one = (code == BYTES) | (code == FLOAT) & (size == 4)
    ints = np.flatnonzero(code == INT)
    bits[ints], one[ints] = varints(words, at[ints], size[ints])
    return one, bits


def varints(words: Words, at: Places, count: Places) -> tuple[Words, npt.NDArray[np.bool_]]:
    """The varints of ``count`` bytes, and whether they are one number and end there."""
    word, few = words[at], np.clip(count, 0, 8)
    short = word & MASKS[few]
    bits = join_sevens(short)
    good = (count <= 8) & (short & HIGH == GOES_ON[few])
    long = np.flatnonzero((count == 9) | (count == 10))
    if len(long):
        rest = words[at[long] + 8]
        # protobuf writes what is negative as ten bytes, the last of them a 1
        ends = np.where(
            count[long] == 9, rest & np.uint64(0x80) == 0, rest & np.uint64(0xFF80) == 0x0180
        )
        good[long] = ends & (word[long] & HIGH == HIGH)
        top = (rest & np.uint64(0x7F)) << np.uint64(56)
        sign = np.where(count[long] == 10, np.uint64(1 << 63), np.uint64(0))
        bits[long] |= top | sign
    return bits, good


def require(usual: bool) -> None:
    """Raises `Refused` unless it is."""
    if not usual:
        raise Refused
