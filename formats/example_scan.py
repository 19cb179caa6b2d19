"""Many small `tf.train.Example` records read in step, with NumPy and without building messages.

A record is nested fields, each a tag byte and a length before its bytes:

    0a len Features | 0a len entry | 0a len key | 12 len Feature | kind len list | 0a len values

First all records are walked together, an entry a step, so that every entry's place is known; then
all entries are read at once, whatever their order. What this reads is the form that writers make.
An entry with another value is left to protobuf (`ODD`); a block with anything else is refused, so
that nothing is accepted here that protobuf would not accept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pipeprof.formats.example_keys import keys_of
from pipeprof.formats.words import HIGH, MASKS, Places, Words, join_sevens, words_of

Octets = npt.NDArray[np.uint8]

BYTES, FLOAT, INT = 1, 2, 4
"""The kinds; each code is a bit, so that all codes of a column or-ed say which there are."""
EMPTY = 8
"""Beside a kind: the list is there and holds nothing."""
ODD = 16
"""More than one value, or not of the usual form."""

_PAD = bytes(24)
"""Words are read up to so far beyond the last record."""
_TAG = 0x0A
_KINDS = np.zeros(256, np.uint8)
_KINDS[[0x0A, 0x12, 0x1A]] = BYTES, FLOAT, INT
_AROUND = 6
"""Bytes of `12 len kind len 0a len` before a value, each length one byte."""
_LONGEST = 129
"""With its value: more would take a length of two bytes."""
_FORM = np.uint64(0xFFFFFF00FFFF)
"""All of them but the kind."""
_FORM_OF_0 = np.uint64(((0x0A00000012) - (2 << 8) - (4 << 24) - (6 << 40)) % 2**64)
_FORM_OF_1 = np.uint64(1 << 8 | 1 << 24 | 1 << 40)
"""What each byte in all adds to the three lengths."""
_NOTHING, _FORM_OF_NOTHING = np.uint64(0xFF00FFFF), np.uint64(0x00000212)
"""`12 02 kind 00`: an empty list."""
_GOES_ON: Words = np.concatenate([[~np.uint64(0)], HIGH & MASKS[:-1]])
"""By bytes of a varint: the bits that say it goes on. No word looks like that of 0 bytes."""


class Refused(Exception):
    """Not of the form that is read here: ask protobuf."""


@dataclass(frozen=True)
class Entries:
    """All entries of a block, in no order; each array of shape (entries,)."""

    data: bytes
    """The records end to end, and zeros."""
    row: Places
    column: Places
    """Place among the names asked for; as many as there are names: none of them."""
    code: npt.NDArray[np.uint8]
    """A kind, with `EMPTY` or not, or `ODD`."""
    bits: Words
    """Of an int or a float; of bytes, their place << 8 and their number."""
    value: Places
    """Where the Feature begins."""
    stop: Places
    """Where it ends."""


def scan(payloads: Sequence[bytes], names: tuple[str, ...]) -> Entries:
    """Raises `Refused`."""
    data = b"".join([*payloads, _PAD])
    octets, words = np.frombuffer(data, np.uint8), words_of(data)
    ends = np.cumsum(np.fromiter(map(len, payloads), np.int64, len(payloads)))
    row, body, stop = _walk(octets, words, ends)
    lengths = octets[body + 1].astype(np.int64)
    after = body + 2 + lengths
    left = stop - after
    _require(bool((octets[body] == _TAG).all() and (lengths < 128).all() and (left >= 2).all()))
    column, ascii_only = keys_of(names).find(words, body + 2, lengths)
    _require(ascii_only)  # protobuf refuses a key that is not UTF-8
    code, bits, value = _values(words, after, left)
    return Entries(data, row, column, code, bits, value, stop)


def _walk(octets: Octets, words: Words, ends: Places) -> tuple[Places, Places, Places]:
    """Of each entry its row, and where what its length counts begins and ends."""
    at = np.concatenate([[0], ends[:-1]])
    row = np.flatnonzero(at < ends)  # an Example of no bytes has no entries
    at, end = at[row], ends[row]
    tags = [at]
    at, stop = _field(octets, words, at)
    _require(np.array_equal(stop, end))
    rows, bodies, stops = [row[:0]], [at[:0]], [at[:0]]
    while True:
        more = at < end
        if not more.all():
            _require(bool((at <= end).all()))
            row, at, end = row[more], at[more], end[more]
            if not len(at):
                break
        body, stop = _field(octets, words, at)
        tags.append(at)
        rows.append(row)
        bodies.append(body)
        stops.append(stop)
        at = stop
    _require(bool((octets[np.concatenate(tags)] == _TAG).all()))
    return np.concatenate(rows), np.concatenate(bodies), np.concatenate(stops)


def _field(octets: Octets, words: Words, at: Places) -> tuple[Places, Places]:
    """Where the bytes of the fields begin and end whose tags are ``at``."""
    length = octets[at + 1].astype(np.int64)
    body = at + 2
    if length.max(initial=0) > 127:
        length, size = _length(words[at + 1])
        body = at + 1 + size
    return body, body + length


def _length(words: Words) -> tuple[Places, Places]:
    """The lengths that these words begin with, and how many bytes each takes: up to 4."""
    size = np.ones(len(words), np.int64)
    goes_on = np.ones(len(words), bool)
    for byte in range(4):
        goes_on &= (words >> np.uint64(8 * byte + 7) & np.uint64(1)).astype(bool)
        size += goes_on
    _require(not goes_on.any())
    return join_sevens(words & MASKS[size]).astype(np.int64), size


def _values(words: Words, after: Places, left: Places) -> tuple[Octets, Words, Places]:
    """Code, bits and place of the values in the ``left`` bytes that follow each key."""
    form, value = words[after], after + 2
    kind = _KINDS[(form >> np.uint64(16)).astype(np.uint8)]
    # fewer than six bytes make a length negative, and so a number beyond any form
    usual = form & _FORM == left.astype(np.uint64) * _FORM_OF_1 + _FORM_OF_0
    usual &= left <= _LONGEST
    count = left - _AROUND
    word = words[after + _AROUND]
    bits = np.where(kind == BYTES, (after + _AROUND << 8 | count).astype(np.uint64), word)
    good = usual & (kind == BYTES)
    good |= usual & (kind == FLOAT) & (count == 4)
    ints = np.flatnonzero(usual & (kind == INT))
    bits[ints], good[ints] = _ints(words, after[ints] + _AROUND, count[ints])
    code = np.where(good, kind, np.uint8(ODD))
    empty = (left == 4) & (form & _NOTHING == _FORM_OF_NOTHING) & (kind > 0)
    code[empty] = kind[empty] | EMPTY
    odd = np.flatnonzero(code == ODD)
    length, size = _length(form[odd] >> np.uint64(8))
    value[odd] = after[odd] + 1 + size
    tagged = (form[odd] & np.uint64(255)) == 0x12
    _require(bool(tagged.all() and (1 + size + length == left[odd]).all()))
    return code, bits, value


def _ints(words: Words, at: Places, count: Places) -> tuple[Words, npt.NDArray[np.bool_]]:
    """The varints of ``count`` bytes, and whether they are one number and end there."""
    word, few = words[at], np.clip(count, 0, 8)
    short = word & MASKS[few]
    bits = join_sevens(short)
    good = (count <= 8) & (short & HIGH == _GOES_ON[few])
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


def _require(usual: bool) -> None:
    if not usual:
        raise Refused
