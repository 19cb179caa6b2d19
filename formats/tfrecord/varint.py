"""Read many varints of protobuf at once, eight bytes at a time, in NumPy arrays of 64-bit words."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pipeprof.formats.base import Buffer
from pipeprof.formats.gather import Places, at_each_byte

Words = npt.NDArray[np.uint64]

HIGH = np.uint64(0x8080808080808080)
"""The top bit of each byte. In a varint it says that another byte follows; text with it is not
ASCII."""
PAD = bytes(160)
"""Bytes that must follow the last record in its buffer. A short entry is compared word by word with
a key of up to 127 bytes."""
MASKS: Words = np.array([2 ** (8 * count) - 1 for count in range(9)], np.uint64)
"""By a count of 0 to 8: the mask of the first bytes of a word."""
_JOINS = tuple(
    (np.uint64(low), np.uint64(high), np.uint64(shift))
    for low, high, shift in (
        (0x007F007F007F007F, 0x7F007F007F007F00, 1),
        (0x00003FFF00003FFF, 0x3FFF00003FFF0000, 2),
        (0x000000000FFFFFFF, 0x0FFFFFFF00000000, 4),
    )
)


def words_of(data: Buffer) -> Words:
    """Return the word at each byte. The shape is (bytes - 7,)."""
    words: Words = at_each_byte(data, "<u8")
    return words


def join_sevens(words: Words) -> Words:
    """Return the values of varints of up to 8 bytes; the bytes behind each must be 0."""
    for low, high, shift in _JOINS:
        upper = words & high
        upper >>= shift
        words = words & low
        words |= upper
    return words


CONTINUES: Words = np.concatenate([[~np.uint64(0)], HIGH & MASKS[:-1]])
"""By the number of bytes of a varint: its bits of `HIGH`. No word equals the entry of 0 bytes."""


def varints(words: Words, at: Places, size: Places) -> tuple[Words, npt.NDArray[np.bool_]]:
    """Return the varints in the ``size`` bytes at ``at``, and whether each range is exactly one
    varint."""
    word, few = words[at], np.minimum(size, 8)
    short = word & MASKS[few]
    values = join_sevens(short)
    good = (size <= 8) & (short & HIGH == CONTINUES[few])
    long = np.flatnonzero((size == 9) | (size == 10))
    if len(long):
        rest = words[at[long] + 8]
        # protobuf writes a negative number as ten bytes, the last of them a 1
        ends = np.where(
            size[long] == 9, rest & np.uint64(0x80) == 0, rest & np.uint64(0xFF80) == 0x0180
        )
        good[long] = ends & (word[long] & HIGH == HIGH)
        top = (rest & np.uint64(0x7F)) << np.uint64(56)
        sign = np.where(size[long] == 10, np.uint64(1 << 63), np.uint64(0))
        values[long] |= top | sign
    return values, good
