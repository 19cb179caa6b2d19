"""The kernel for a column of numbers in Parquet: from the bytes of its pages to an array.

It says when it met anything but plain and whole pages: then it has not read beyond its buffers,
and what it wrote is of no use.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pipeprof.formats.compiled import kernel
from pipeprof.formats.parquet_level_kernels import all_are, begins
from pipeprof.formats.parquet_page_kernels import (
    COUNT,
    DATA_V2,
    DEFINITIONS,
    DICTIONARY,
    ENCODING,
    LENGTH,
    PACKED,
    PLACES,
    PLACES_TOO,
    PLAIN,
    REPETITIONS,
    ROWS,
    SIZE,
    START,
    TYPE,
    little,
    number_at,
)
from pipeprof.formats.parquet_snappy_kernel import SLACK, unsnapped
from pipeprof.formats.vectors import get, load, move, pointer, put_value

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]
Numbers = npt.NDArray[Any]


@kernel()
def four(word: Any, width: int, last: Any, dictionary: Any, target: Any, to: int) -> Any:
    """Put the numbers at four places of ``width`` bits behind ``target + to``. The highest bit
    of the answer is set if a place is beyond ``last``."""
    step, mask = np.uint64(width), np.uint64((1 << width) - 1)
    a, b = word & mask, word >> step & mask
    c, d = word >> 2 * step & mask, word >> 3 * step & mask
    put_value(target, to, get(dictionary, np.int64(a)))
    put_value(target, to + 1, get(dictionary, np.int64(b)))
    put_value(target, to + 2, get(dictionary, np.int64(c)))
    put_value(target, to + 3, get(dictionary, np.int64(d)))
    return (last - a) | (last - b) | (last - c) | (last - d)


@kernel()
def packed(data: Bytes, at: int, width: int, limit: int, dictionary: Any, out: Numbers) -> bool:
    """Fill ``out`` with the numbers at the places of ``width`` bits that lie in ``data`` from
    ``at`` on. Whether all places are below ``limit``; they are followed in any case."""
    source, target, room = pointer(data), pointer(out), len(data) - at
    last, beyond, done = np.uint64(limit) - np.uint64(1), np.uint64(0), 0
    half = width >> 1  # where a fifth place begins, or half a byte before
    if width <= 16:  # so that eight bytes have four
        done = max(0, min(len(out) >> 3, (room - half - 8) // width + 1)) << 3
        for n in range(0, done, 8):
            place = at + (n >> 3) * width
            beyond |= four(load(source, place), width, last, dictionary, target, n)
            word = load(source, place + half) >> np.uint64(4 * width & 7)
            beyond |= four(word, width, last, dictionary, target, n + 4)
    for n in range(done, len(out)):
        first = n * width >> 3
        size = room - first
        word = load(source, at + first) if size >= 8 else little(source, at + first, size)
        place = word >> np.uint64(n * width & 7) & np.uint64((1 << width) - 1)
        beyond |= last - place
        put_value(target, n, get(dictionary, np.int64(place)))
    return not beyond >> np.uint64(63)


@kernel(
    "b1(Array(u1, 1, 'C', True), i8, i8, u4[::1], i8, u4[::1])",
    "b1(Array(u1, 1, 'C', True), i8, i8, u8[::1], i8, u8[::1])",
)
def taken(data: Bytes, at: int, stop: int, dictionary: Numbers, limit: int, out: Numbers) -> bool:
    """Fill ``out`` with numbers of the dictionary, which is a power of two long and of which
    ``limit`` are there. ``data[at:stop]`` has their places: their width in bits, then runs, each
    of one place or of packed ones."""
    if at >= stop:
        return False
    width = np.int64(data[at])
    if not 0 < width <= 32 or 1 << width > len(dictionary):
        return False
    at, size, done = at + 1, (width + 7) >> 3, 0
    while done < len(out):
        run, at = number_at(data, at, stop)
        if at < 0 or run < 2:
            return False
        length = run >> 1
        if run & 1:
            if length * width > stop - at:
                return False
            end = min(done + 8 * length, len(out))
            if not packed(data, at, width, limit, pointer(dictionary), out[done:end]):
                return False
            at += length * width
        else:
            if size > stop - at:
                return False
            end = min(done + length, len(out))
            place = little(pointer(data), at, size)
            if place >= np.uint64(limit):
                return False
            out[done:end] = dictionary[np.int64(place)]
            at += size
        done = end
    return True


@kernel()
def length_at(data: Bytes, at: int, stop: int) -> int:
    """Of levels, before which it stands; -1: they do not end by ``stop``."""
    if stop - at < 4:
        return -1
    length = np.int64(little(pointer(data), at, 4))
    return length if length <= stop - at - 4 else -1


@kernel("i8(Array(u1, 1, 'C', True), i8[:, ::1], i8, u1[::1], i4[::1], u1[::1], i8)")
def numbers(
    data: Bytes, pages: Longs, deep: int, words: Bytes, starts: Ints, out: Bytes, itemsize: int
) -> int:
    """Fill ``out`` with all values of ``pages``, which `pages_of` found, plain or packed by snappy;
    -1: they are not that. If there is room in ``starts``, they are lists: where each begins, and
    the answer is how many.

    ``deep``: the highest level of definition. ``words``: room for the dictionary, of a power of two
    values that every place is below, and `SLACK`. ``itemsize``: of a value, 4 or 8 bytes.
    """
    limit, done, row, most, lists = 0, 0, 0, 0, len(starts) > 0
    for n in range(len(pages)):
        most = max(most, pages[n, SIZE] * pages[n, PACKED])
    room = np.empty(most + SLACK, np.uint8)
    for n in range(len(pages)):
        page, source = pages[n], data
        repetitions, definitions = page[REPETITIONS], page[DEFINITIONS]
        begin, stop = page[START], page[START] + page[LENGTH]
        at, size = begin + repetitions + definitions, page[SIZE] - repetitions - definitions
        if page[TYPE] == DICTIONARY:
            limit = page[COUNT]
            if size != limit * itemsize or size + SLACK > len(words):
                return -1
            if not page[PACKED]:
                move(pointer(data), at, size, pointer(words), 0)
            elif not unsnapped(data, at, stop, words, size):
                return -1
            continue
        if page[PACKED]:
            if not unsnapped(data, at, stop, room, size):
                return -1
            source, at, stop = room, 0, size
        count, apart = page[COUNT], page[TYPE] == DATA_V2
        levels, level, end = (data, begin, at) if apart else (source, at, stop)
        if apart and ((repetitions and not lists) or (definitions and not deep)):
            return -1
        if lists:
            before = row
            if not apart:
                repetitions, level = length_at(levels, level, end), level + 4
            row = begins(levels, level, level + repetitions, count, done, starts, row)
            if repetitions < 0 or row < 0 or (apart and row - before != page[ROWS]):
                return -1
            level += repetitions
        elif apart and count != page[ROWS]:
            return -1
        if deep:
            if not apart:
                definitions, level = length_at(levels, level, end), level + 4
            if definitions < 0 or not all_are(levels, level, level + definitions, count, deep):
                return -1
            level += definitions
        at = at if apart else level
        first, after = done * itemsize, (done + count) * itemsize
        done += count
        if after > len(out):
            return -1
        if page[ENCODING] == PLAIN:
            if stop - at != after - first:
                return -1
            move(pointer(source), at, after - first, pointer(out), first)
            continue
        part = out[first:after]
        if page[ENCODING] != PLACES and page[ENCODING] != PLACES_TOO:
            return -1
        if itemsize == 4:
            known = taken(source, at, stop, words.view(np.uint32), limit, part.view(np.uint32))
        else:
            known = taken(source, at, stop, words.view(np.uint64), limit, part.view(np.uint64))
        if not known:
            return -1
    return row if done * itemsize == len(out) else -1
