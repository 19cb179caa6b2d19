"""Keys of `tf.train.Example` records and their numbers, for `pipeprof.formats.example_kernel`.

A table of all that were met, by hash; a key is kept as words of eight bytes, zeros behind it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pipeprof.formats.compiled import kernel
from pipeprof.formats.vectors import get, load, store
from pipeprof.formats.words import HIGH, MASKS

KEY_WORDS = 16
"""As many as a key may have whose length takes one byte."""
MOST_KEYS = 4096
SLOTS = 4 * MOST_KEYS
_MOST_PROBES = 64
_FACTOR, _SHIFT = np.uint64(0x9E3779B97F4A7C15), np.uint64(64 - 14)
"""Of a product the bits that tell one of `SLOTS`."""


def empty_table() -> Any:
    """The words of keys, how many bytes each has, and by hash the numbers of keys. Kernels hand its
    pointers on, so that whoever calls them must hold it."""
    return (
        np.empty(MOST_KEYS * KEY_WORDS, np.uint64),
        np.full(MOST_KEYS, -1),
        np.full(SLOTS, -1),
    )


@kernel()
def is_key(data: Any, at: int, length: int, found: int, table: Any) -> Any:
    """Whether the key there has this number."""
    known, sizes, _ = table
    if get(sizes, found) != length:
        return False
    word = found * KEY_WORDS
    while length > 8:
        if load(data, at) != get(known, word):
            return False
        at, word, length = at + 8, word + 1, length - 8
    return ((load(data, at) ^ get(known, word)) & MASKS[length]) == 0


@kernel()
def number_of(data: Any, at: int, length: int, ascii_only: bool, keys: int, table: Any) -> Any:
    """The number of the key there, and of how many: ``keys``, or one more, as which it is kept.
    -1: there is no room for it, or it is not ``ascii_only``."""
    known, sizes, slots = table
    slot = _slot(data, at, length, table)
    if slot < 0:
        return slot, keys
    found = get(slots, slot)
    if found >= 0:
        return found, keys
    together = np.uint64(0)
    for word in range((length + 7) >> 3):
        part = load(data, at + 8 * word) & MASKS[min(length - 8 * word, 8)]
        together |= part
        store(known, keys * KEY_WORDS + word, part)
    if ascii_only and (together & HIGH) != 0:
        return np.int64(-1), keys
    store(sizes, keys, np.uint64(length))
    store(slots, slot, np.uint64(keys))
    return np.int64(keys), keys + 1


@kernel()
def _slot(data: Any, at: int, length: int, table: Any) -> Any:
    """Where the number of this key stands, or would; -1: too many others stand there."""
    mixed = np.uint64(length)
    for word in range((length + 7) >> 3):
        part = load(data, at + 8 * word) & MASKS[min(length - 8 * word, 8)]
        mixed = (mixed ^ part) * _FACTOR
    slot = np.int64(mixed >> _SHIFT)
    for _ in range(_MOST_PROBES):
        found = get(table[2], slot)
        if found < 0 or is_key(data, at, length, found, table):
            return slot
        slot = (slot + 1) & (SLOTS - 1)
    return np.int64(-1)
