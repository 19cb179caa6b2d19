"""Kernels for words in a page of Parquet, and for their places in a dictionary.

Each says when it met anything but plain and whole values: then it has not read beyond its buffers,
and what it wrote is of no use.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pipeprof.formats.compiled import kernel
from pipeprof.formats.parquet_page_kernels import little, number_at
from pipeprof.formats.vectors import load, pointer, store

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int32]

SLACK = 8
"""Bytes behind words, which are copied eight at a time."""


@kernel()
def unpack(data: Bytes, at: int, width: int, out: Ints) -> None:
    """Fill ``out`` with numbers of ``width`` bits, which lie in ``data`` from ``at`` on."""
    mask = np.uint64((1 << width) - 1)
    step = np.uint64(width)
    room = len(data) - at - 8
    # of so many the first byte is followed by seven more
    quick = min(len(out), (8 * room + 7) // width + 1) if room >= 0 else 0
    n, source = 0, pointer(data)
    if width <= 16:  # a fourth number begins a byte or half a byte, so that eight bytes have four
        for n in range(0, quick - 3, 4):
            word = load(source, at + (n * width >> 3)) >> np.uint64(n * width & 7)
            out[n] = word & mask
            out[n + 1] = word >> step & mask
            out[n + 2] = word >> 2 * step & mask
            out[n + 3] = word >> 3 * step & mask
        n = max(0, quick) >> 2 << 2
    elif width <= 28:
        for n in range(0, quick - 1, 2):
            word = load(source, at + (n * width >> 3)) >> np.uint64(n * width & 7)
            out[n] = word & mask
            out[n + 1] = word >> step & mask
        n = max(0, quick) >> 1 << 1
    while n < len(out):
        first = at + (n * width >> 3)
        word = little(source, first, min(8, len(data) - first)) >> np.uint64(n * width & 7)
        out[n] = word & mask
        n += 1


@kernel("b1(Array(u1, 1, 'C', True), i8, i8, i4[::1])")
def unpacked(data: Bytes, at: int, limit: int, out: Ints) -> bool:
    """Fill ``out`` with the numbers below ``limit`` that the rest of a page has: their width in
    bits, then runs, each of one number or of packed ones. Whether they are all there."""
    stop, done = len(data), 0
    if at >= stop or not 0 < data[at] <= 32:
        return False
    width = np.int64(data[at])
    size = (width + 7) >> 3
    at += 1
    while done < len(out):
        run, at = number_at(data, at, stop)
        if at < 0 or run < 2:
            return False
        length = run >> 1
        if run & 1:
            if length * width > stop - at:
                return False
            end = min(done + 8 * length, len(out))
            unpack(data, at, width, out[done:end])
            at += length * width
        else:
            if size > stop - at:
                return False
            end = min(done + length, len(out))
            out[done:end] = np.int32(little(pointer(data), at, size))
            at += size
        done = end
    largest = np.uint32(0)
    for n in range(len(out)):
        largest = max(largest, np.uint32(out[n]))
    return bool(largest < limit)


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


@kernel("b1(Array(u1, 1, 'C', True), i4[::1])")
def begin(data: Bytes, starts: Ints) -> bool:
    """Where each word in ``data`` begins, behind its length, and where one more would. Whether it
    is ``len(starts) - 1`` words, to the end."""
    at, source = 4, pointer(data)
    for n in range(len(starts) - 1):
        if at > len(data):
            return False
        starts[n] = at
        at += np.int64(little(source, at - 4, 4)) + 4
        if at > len(data) + 4:
            return False
    starts[len(starts) - 1] = at
    return at == len(data) + 4


@kernel("i8(i4[::1], i4[::1])")
def size_of(starts: Ints, places: Ints) -> int:
    """How many bytes the words at these places of a dictionary come to."""
    size = 0
    for n in range(len(places)):
        place = np.uint32(places[n])
        size += np.int64(starts[place + 1]) - np.int64(starts[place]) - 4
    return size


@kernel("void(Array(u1, 1, 'C', True), i4[::1], i4[::1], i4[::1], u1[::1])")
def gather_words(data: Bytes, starts: Ints, places: Ints, ends: Ints, out: Bytes) -> None:
    """The words at these places of the dictionary that ``data`` is, as `words` puts them; there
    is room for them."""
    source, stop, target = pointer(data), len(data), pointer(out)
    to = np.int64(ends[0])
    for n in range(len(places)):
        place = np.uint32(places[n])
        start = np.int64(starts[place])
        length = np.int64(starts[place + 1]) - start - 4
        put(source, start, stop, length, target, to)
        to += length
        ends[n + 1] = to
