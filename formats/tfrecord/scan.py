"""Many small `tf.train.Example` records read in step, with NumPy and without building messages.

A record is nested fields, each a tag byte and a length before its bytes:

    0a len Features | 0a len entry | 0a len key | 12 len Feature | kind len list | 0a len values

All records are walked together, one entry per step. Most writers keep one order, so the entries of
a step mostly have the same key. They are compared with the first of them, and those that differ are
compared with the first of these. A block with records of any other form is refused and left to
protobuf. So the scan reads no column differently from protobuf.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pipeprof.formats.base import Buffer
from pipeprof.formats.gather import Octets, Places
from pipeprof.formats.tfrecord.framing import Records
from pipeprof.formats.tfrecord.varint import MASKS, Words, join_sevens, words_of

Flags = npt.NDArray[np.bool_]

BYTES, FLOAT, INT = 1, 2, 4
"""The kinds of a list. Each is a bit, so that the kinds of a column can be combined by *or*."""
EMPTY = 8
"""A flag of a kind: the list is there, and is empty."""

_TAG, _VALUE_TAG = np.uint64(0x0A), np.uint64(0x12)
_KINDS = np.zeros(256, np.uint8)
_KINDS[[0x0A, 0x12, 0x1A]] = BYTES, FLOAT, INT
_BYTE, _SHORT_FIELD = np.uint64(0xFF), np.uint64(0x80FF)
"""Masks of a field's tag; the second one includes the bit of a length with another byte."""
_8, _16 = np.uint64(8), np.uint64(16)
_AROUND = 6
"""Bytes of `12 len kind len 0a len` before a value, where each length has one byte."""
_LONGEST = 129
"""The most bytes with the value. A longer one has a length of two bytes."""
_FORM = np.uint64(0xFFFFFF00FFFF)
"""Masks all of these six bytes except the kind."""
_FORM_OF_0 = np.uint64(((0x0A00000012) - (2 << 8) - (4 << 24) - (6 << 40)) % 2**64)
_FORM_OF_1 = np.uint64(1 << 8 | 1 << 24 | 1 << 40)
"""What each byte of content adds to the three lengths."""
_MOST_GROUPS = 10_000
"""The most groups of entries with one key, for records of many entries. A group costs about 0.1
ms."""


class Refused(Exception):
    """The records have a form that the scan does not read; protobuf has to."""


@dataclass(frozen=True)
class Cells:
    """Where the values of the asked columns are; each array has the shape (columns, rows)."""

    kind: Octets
    """`BYTES`, `FLOAT` or `INT`, possibly with `EMPTY`; 0 where the record has no such feature."""
    at: Places
    size: Places
    """Sizes in bytes."""


def scan(records: Records, names: list[str]) -> tuple[Cells, bool]:
    """Find the values of the columns ``names``, and whether the records hold other entries.

    Other entries are skipped; only their form as an entry with one name is checked. Raises
    `Refused`.
    """
    shape, words = (len(names), len(records)), words_of(records.data)
    cells = Cells(np.zeros(shape, np.uint8), np.zeros(shape, np.int64), np.zeros(shape, np.int64))
    columns = {name.encode(): column for column, name in enumerate(names)}
    others = False
    for key, row, value, end in _walk(records, words):
        column = columns.get(key)
        if column is None:
            others = True
            require(_field(words, value, _VALUE_TAG)[1] == end)
            continue
        kind, at, size = _contents(words, value, end)
        rows = slice(None) if len(row) == len(records) else row  # a slice is faster
        require(cells.kind[column, rows] == 0)  # else a record holds a name twice
        cells.kind[column, rows] = kind
        cells.at[column, rows] = at
        cells.size[column, rows] = size
    return cells, others


def _walk(records: Records, words: Words) -> Iterator[tuple[bytes, Places, Places, Places]]:
    """Yield all entries of all records, those with the same key and step together.

    Yields the key, the rows, and the bounds of the Features behind the key.
    """
    groups, row = 0, np.flatnonzero(records.starts < records.stops)  # no bytes: no entries
    at, stops = _field(words, records.starts[row])
    require(stops == records.stops[row])
    while len(row):
        more = at < stops
        if not more.all():
            require(at[~more] == stops[~more])
            row, at, stops = row[more], at[more], stops[more]
            continue
        body, end = _field(words, at)
        at, entry_row = end, row
        while len(entry_row):
            groups += 1
            if groups > _MOST_GROUPS:
                raise Refused
            same, key = _same_key(records.data, words, body)
            if same.all():
                yield key, entry_row, body + (2 + len(key)), end
                break
            yield key, entry_row[same], body[same] + (2 + len(key)), end[same]
            entry_row, body, end = entry_row[~same], body[~same], end[~same]


def _same_key(data: Buffer, words: Words, body: Places) -> tuple[Flags, bytes]:
    """Return which entries have the key of the first one, and that key."""
    first = int(body[0])
    tag, length = data[first : first + 2]
    if tag != _TAG or length >= 128:
        raise Refused
    whole = bytes(data[first : first + 2 + length])
    same = words[body] & MASKS[min(len(whole), 8)] == _word(whole[:8])
    for start in range(8, len(whole), 8):
        part = whole[start : start + 8]
        same &= words[body + start] & MASKS[len(part)] == _word(part)
    return same, whole[2:]


def _word(part: bytes) -> np.uint64:
    word: np.uint64 = np.uint64(int.from_bytes(part, "little"))
    return word


def _field(words: Words, at: Places, tag: np.uint64 = _TAG) -> tuple[Places, Places]:
    """Return the bounds of the content of the fields at ``at``, which all have this tag."""
    head = words[at]
    if (head & _SHORT_FIELD == tag).all():
        body = at + 2
        return body, body + (head >> _8 & _BYTE).view(np.int64)
    require(head & _BYTE == tag)
    return _any_field(head, at)


def _any_field(head: Words, at: Places) -> tuple[Places, Places]:
    """Return the same for fields of any tag and length, which begin with the words ``head``."""
    length, size = _length(head >> _8)
    body = at + 1 + size
    return body, body + length


def _length(words: Words) -> tuple[Places, Places]:
    """Return the lengths at the start of these words, and how many bytes each takes: up to 4."""
    size = np.ones(len(words), np.int64)
    continues = np.ones(len(words), bool)
    for byte in range(4):
        continues &= (words >> np.uint64(8 * byte + 7) & np.uint64(1)).astype(bool)
        size += continues
    require(~continues)
    return join_sevens(words & MASKS[size]).view(np.int64), size


def _contents(words: Words, value: Places, end: Places) -> tuple[Octets, Places, Places]:
    """Return the kind, the start and the size in bytes of the values in each Feature at
    ``value``."""
    form, left = words[value], end - value
    # fewer than six bytes make a length negative, and so a number beyond any form
    usual = form & _FORM == left.view(np.uint64) * _FORM_OF_1 + _FORM_OF_0
    usual &= left <= _LONGEST
    kind = _KINDS[(form >> _16 & _BYTE).view(np.int64)]
    at, size = value + _AROUND, left - _AROUND
    if not usual.all():
        other = np.flatnonzero(~usual)
        kind[other], at[other], size[other] = _other_contents(words, value[other], end[other])
    require(kind > 0)
    return kind, at, size


def _other_contents(words: Words, value: Places, end: Places) -> tuple[Octets, Places, Places]:
    """Return the same for empty lists, and where a length takes more than one byte."""
    feature, stop = _field(words, value, _VALUE_TAG)
    require((stop == end) & (feature < end))
    head = words[feature]
    listed, stop = _any_field(head, feature)
    require(stop == end)
    kind, empty = _KINDS[(head & _BYTE).view(np.int64)], listed == end
    kind[empty & (kind > 0)] |= EMPTY
    filled = np.flatnonzero(~empty)
    at = listed.copy()
    at[filled], stop = _field(words, listed[filled])
    require(stop == end[filled])
    return kind, at, end - at


def require(usual: Flags | np.bool_) -> None:
    """Raise `Refused` unless all are true."""
    if not usual.all():
        raise Refused
