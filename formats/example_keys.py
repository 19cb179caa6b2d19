"""Which of the names asked for each of many keys is: a hash without collisions, then a compare."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from pipeprof.formats.words import HIGH, MASKS, Places, Words, words_of

MOST_NAMES = 2000
"""The table grows with their square."""
_Parts = list[tuple[Any, Words]]
"""The keys' first words, their second ones, ...: of which keys, and the words."""


class Keys:
    """Names to look for: up to `MOST_NAMES`, each once."""

    def __init__(self, names: tuple[str, ...]) -> None:
        texts = [name.encode() for name in names]
        self._lengths = np.array([len(text) for text in texts], np.int64)
        at = np.cumsum(self._lengths) - self._lengths
        parts = _parts(words_of(b"".join([*texts, bytes(8)])), at, self._lengths)
        self._words = np.zeros((len(parts), len(names)), np.uint64)
        for own, (some, part) in zip(self._words, parts, strict=True):
            own[some] = part
        bits = max(8, (len(names) ** 2).bit_length() - 1)
        self._factor, slots = _spread(self._lengths, parts, bits)
        self._table = np.zeros(2**bits, np.int64)
        self._table[slots] = np.arange(len(names))
        self._shift = 64 - bits

    def find(self, words: Words, at: Places, lengths: Places) -> tuple[Places, bool]:
        """The place of each key among the names, or their number for one that is none of them;
        and whether such keys are all ASCII. ``words`` begin at each byte."""
        parts = _parts(words, at, lengths)
        found: Places = self._table[_slots(lengths, parts, self._factor, self._shift)]
        same = self._lengths[found] == lengths
        for own, (some, part) in zip(self._words, parts, strict=False):
            same[some] &= own[found[some]] == part
        other = ~same
        if not other.any():
            return found, True
        found[other] = len(self._lengths)
        return found, not any((part[other[some]] & HIGH).any() for some, part in parts)


@lru_cache(maxsize=16)
def keys_of(names: tuple[str, ...]) -> Keys:
    return Keys(names)


def _parts(words: Words, at: Places, lengths: Places) -> _Parts:
    parts: _Parts = [(slice(None), words[at] & MASKS[np.minimum(lengths, 8)])]
    for start in range(8, int(lengths.max(initial=0)), 8):
        longer = np.flatnonzero(lengths > start)
        kept = MASKS[np.minimum(lengths[longer] - start, 8)]
        parts.append((longer, words[at[longer] + start] & kept))
    return parts


def _slots(lengths: Places, parts: _Parts, factor: np.uint64, shift: int) -> Places:
    mixed = lengths.astype(np.uint64)
    for some, part in parts:
        mixed[some] = (mixed[some] ^ part) * factor
    slots: Places = (mixed >> np.uint64(shift)).astype(np.int64)
    return slots


def _spread(lengths: Places, parts: _Parts, bits: int) -> tuple[np.uint64, Places]:
    """A factor that gives each name a slot of its own: one in a few does."""
    rng = np.random.default_rng(0)
    while True:
        factor = np.uint64(rng.integers(2**63, 2**64, dtype=np.uint64) | np.uint64(1))
        slots = _slots(lengths, parts, factor, 64 - bits)
        if len(np.unique(slots)) == len(slots):
            return factor, slots
