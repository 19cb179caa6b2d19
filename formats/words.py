"""Bytes in NumPy arrays of little-endian 64-bit words, of which the first so many bytes count."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pipeprof.formats.base import Buffer

Words = npt.NDArray[np.uint64]
Places = npt.NDArray[np.int64]
"""Of bytes in a block."""

HIGH = np.uint64(0x8080808080808080)
"""The bit of each byte by which a varint goes on, and by which text is not ASCII."""
PAD = bytes(24)
"""What follows the last record in its buffer, at least: so far beyond it words are read."""
MASKS: Words = np.array([2 ** (8 * count) - 1 for count in range(9)], np.uint64)
"""The first 0 to 8 bytes."""
_JOINS = tuple(
    (np.uint64(low), np.uint64(high), np.uint64(shift))
    for low, high, shift in (
        (0x007F007F007F007F, 0x7F007F007F007F00, 1),
        (0x00003FFF00003FFF, 0x3FFF00003FFF0000, 2),
        (0x000000000FFFFFFF, 0x0FFFFFFF00000000, 4),
    )
)


def words_of(data: Buffer) -> Words:
    """The word at each byte: shape (bytes - 7,)."""
    words: Words = np.ndarray((len(data) - 7,), "<u8", data, 0, (1,))
    return words


def spans_of(at: Places, size: Places) -> Words:
    """Place << 32 | bytes, of bytes that begin there."""
    return (at << 32 | size).astype(np.uint64)


def join_sevens(words: Words) -> Words:
    """The numbers of varints of up to 8 bytes; the bytes behind them must be 0."""
    for low, high, shift in _JOINS:
        words = (words & low) | ((words & high) >> shift)
    return words
