"""Kernels for words in a page of Parquet, and in a dictionary.

Each says when it met anything but plain and whole values: then it has not read beyond its buffers,
and what it wrote is of no use.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pipeprof.formats.compiled import kernel
from pipeprof.formats.parquet_page_kernels import little
from pipeprof.formats.vectors import load, pointer, store

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int32]
Spans = npt.NDArray[np.uint64]
"""Of words: where one begins << 32 | how many bytes it has."""

SLACK = 8
"""Bytes behind words, which are copied eight at a time."""
APART = 8
"""Words may lie in the memory that they are put into: at least so many bytes behind where they go,
and their length before them."""
ROOM = 128
"""Bytes to spare, for this, and for what unpacking needs."""
LENGTH = np.uint64(2**32 - 1)
"""Which of a span."""


@kernel()
def put(source: Any, at: int, stop: int, length: int, target: Any, to: int) -> None:
    """Bytes from before ``source + stop`` to where there are `SLACK` bytes to spare."""
    end = at + length
    while at < end - 32:
        a, b = load(source, at), load(source, at + 8)
        c, d = load(source, at + 16), load(source, at + 24)
        store(target, to, a)
        store(target, to + 8, b)
        store(target, to + 16, c)
        store(target, to + 24, d)
        at, to = at + 32, to + 32
    while at < end:
        word = load(source, at) if at + 8 <= stop else little(source, at, stop - at)
        store(target, to, word)
        at, to = at + 8, to + 8


@kernel("b1(Array(u1, 1, 'C', True), i8, i4[::1], u1[::1])")
def words(data: Bytes, at: int, ends: Ints, out: Bytes) -> bool:
    """Put end to end, from ``ends[0]`` on, what lies in ``data`` up to its end, each behind its
    length; and say in ``ends`` where it ends. Whether it is ``len(ends) - 1``, and all of it
    fits, with `SLACK` bytes to spare."""
    stop, room = len(data), len(out) - SLACK
    source, target = pointer(data), pointer(out)
    to = np.int64(ends[0])
    for n in range(1, len(ends)):
        if stop - at < 4:
            return False
        length = np.int64(little(source, at, 4))
        at += 4
        if length > stop - at or length > room - to:
            return False
        put(source, at, stop, length, target, to)
        at, to = at + length, to + length
        ends[n] = to
    return at == stop


@kernel("b1(Array(u1, 1, 'C', True), u8[::1], i8)")
def spans(data: Bytes, found: Spans, count: int) -> bool:
    """Where each word in ``data`` begins, behind its length. Whether it is so many words, to the
    end."""
    at, stop, source = 0, len(data), pointer(data)
    for n in range(count):
        if stop - at < 4:
            return False
        length = np.int64(little(source, at, 4))
        at += 4
        if length > stop - at:
            return False
        found[n] = np.uint64(at << 32 | length)
        at += length
    return at == stop


@kernel("i8(u8[::1])")
def size_of(words: Spans) -> int:
    """How many bytes these come to."""
    size = 0
    for span in words:
        size += np.int64(span & LENGTH)
    return size


@kernel("void(Array(u1, 1, 'C', True), u8[::1], i4[::1], u1[::1])")
def gather_words(data: Bytes, words: Spans, ends: Ints, out: Bytes) -> None:
    """These words, whose spans in ``data`` are given, as `words` puts them; there is room for
    them."""
    source, stop, target = pointer(data), len(data), pointer(out)
    to = np.int64(ends[0])
    for n in range(len(words)):
        length = np.int64(words[n] & LENGTH)
        put(source, np.int64(words[n] >> np.uint64(32)), stop, length, target, to)
        to += length
        ends[n + 1] = to
