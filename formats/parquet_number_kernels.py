"""The kernel for columns of numbers in Parquet: from the bytes of their pages to arrays.

It says when it met anything but plain and whole pages: then it has not read beyond its buffers,
and what it wrote is of no use.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pipeprof.formats.compiled import kernel
from pipeprof.formats.parquet_level_kernels import all_are, begins, present, spread
from pipeprof.formats.parquet_page_kernels import (
    ADDRESS,
    BYTES,
    CHUNK,
    COUNT,
    DATA_V2,
    DEFINITIONS,
    DICTIONARY,
    ENCODING,
    FIRST,
    LENGTH,
    NULLS,
    PACKED,
    PAGES,
    PLACES,
    PLACES_TOO,
    PLAIN,
    REPETITIONS,
    ROWS,
    SIZE,
    START,
    TYPE,
    VALUES,
    little,
)
from pipeprof.formats.parquet_place_kernels import taken
from pipeprof.formats.parquet_snappy_kernel import SLACK, as_it_is, unsnapped
from pipeprof.formats.vectors import bytes_at, ints_at, move, pointer

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]

DEEP, LISTS, STARTS, OUT, ITEMSIZE, VALID, FOUND = range(CHUNK, CHUNK + 7)
"""More of a column chunk: the highest level of definition; how many lists it has, or 0 if it has
none, and where in memory to note where each begins; where to put values, and the bytes of one, 4 or
8; where to note of each whether it is there, or 0: nowhere. `columns` tells how many lists there
were, or -1, or `LACKING`."""
LACKING = -2
"""Some values are null, and that is to be noted."""


@kernel()
def length_at(data: Bytes, at: int, stop: int) -> int:
    """Of levels, before which it stands; -1: they do not end by ``stop``."""
    if stop - at < 4:
        return -1
    length = np.int64(little(pointer(data), at, 4))
    return length if length <= stop - at - 4 else -1


@kernel()
def behind_levels(
    page: Longs, data: Bytes, at: int, stop: int, deep: int, first: int, starts: Ints, row: int,
    valid: Bytes,
) -> tuple[int, int, int]:  # fmt: skip
    """Of a page's levels, which begin at ``at``: which row is next, where they end, and how many
    values there are; -1: a value of a list is null, or a list empty, or they do not agree with the
    page; `LACKING`: a value is null, and there is no room in ``valid``. If there is room in
    ``starts``, they are of lists, of which ``row`` is next, and ``first`` the next value."""
    count, apart, lists = page[COUNT], page[TYPE] == DATA_V2, len(starts) > 0
    repetitions, definitions, there = page[REPETITIONS], page[DEFINITIONS], page[COUNT]
    if apart and ((repetitions and not lists) or (definitions and not deep)):
        return -1, at, 0
    if apart and not lists and count != page[ROWS]:
        return -1, at, 0
    if lists:
        before = row
        if not apart:
            repetitions, at = length_at(data, at, stop), at + 4
        row = begins(data, at, at + repetitions, count, first, starts, row)
        if repetitions < 0 or row < 0 or (apart and row - before != page[ROWS]):
            return -1, at, 0
        at += repetitions
    if deep:
        if not apart:
            definitions, at = length_at(data, at, stop), at + 4
        if definitions < 0:
            return -1, at, 0
        if len(valid):
            there = present(data, at, at + definitions, valid[first : first + count])
        elif not all_are(data, at, at + definitions, count, deep):
            return -1 if lists else LACKING, at, 0
        at += definitions
    if there < 0 or (apart and count - there != page[NULLS]):
        return -1, at, 0
    return row, at, there


@kernel()
def room_for(dictionary: Longs, itemsize: int) -> int:
    """Bytes: a power of two values, which all places are below, and what unpacking needs; -1: it is
    not as long as its values. Other pages take none."""
    if dictionary[TYPE] != DICTIONARY:
        return SLACK
    count, values = dictionary[COUNT], 2
    if dictionary[SIZE] != count * itemsize:
        return -1
    while values < count:
        values *= 2
    return values * itemsize + SLACK


@kernel()
def taken_at(
    data: Bytes, at: int, stop: int, dictionary: Bytes, limit: int, out: Bytes, itemsize: int
) -> bool:
    """`taken`, of numbers of 4 bytes or of 8."""
    if itemsize == 4:
        words, numbers = dictionary.view(np.uint32), out.view(np.uint32)
        return taken(data, at, stop, words, limit, numbers)
    longs, wide = dictionary.view(np.uint64), out.view(np.uint64)
    return taken(data, at, stop, longs, limit, wide)


@kernel("i8(u1[::1], i8[:, ::1], i8, i4[::1], u1[::1], i8, u1[::1])")
def numbers(
    data: Bytes, pages: Longs, deep: int, starts: Ints, out: Bytes, itemsize: int, valid: Bytes
) -> int:
    """Fill ``out`` with all values of ``pages``, which `find` found, plain or packed by snappy; -1:
    they are not that. If there is room in ``starts``, they are lists: where each begins, and the
    answer is how many. If there is room in ``valid``, it is filled with 1, and 0 for a null;
    else, where one is met, the answer is `LACKING`."""
    needed = room_for(pages[0], itemsize)
    if needed < 0:
        return -1
    words = np.empty(needed, np.uint8)
    limit, done, row, most = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    for n in range(len(pages)):
        most = max(most, pages[n, SIZE] * pages[n, PACKED])
    room = np.empty(most + SLACK, np.uint8)
    for n in range(len(pages)):
        page, source = pages[n], data
        levels = page[REPETITIONS] + page[DEFINITIONS]
        begin, stop = page[START], page[START] + page[LENGTH]
        at, size = begin + levels, page[SIZE] - levels
        if page[TYPE] == DICTIONARY:
            limit = page[COUNT]
            if not page[PACKED]:
                move(pointer(data), at, size, pointer(words), 0)
            elif not unsnapped(data, at, stop, words, size):
                return -1
            continue
        if page[PACKED]:
            plain = as_it_is(data, at, stop, size)
            if plain >= 0:
                at, stop = plain, plain + size
            elif not unsnapped(data, at, stop, room, size):
                return -1
            else:
                source, at, stop = room, 0, size
        apart = page[TYPE] == DATA_V2
        where, level, end = (data, begin, begin + levels) if apart else (source, at, stop)
        row, level, there = behind_levels(page, where, level, end, deep, done, starts, row, valid)
        if row < 0:
            return row
        at = at if apart else level
        before, done = done, done + page[COUNT]
        if done * itemsize > len(out):
            return -1
        part = out[before * itemsize : (before + there) * itemsize]
        if page[ENCODING] == PLAIN:
            if stop - at != len(part):
                return -1
            move(pointer(source), at, len(part), pointer(out), before * itemsize)
        else:
            by_place = page[ENCODING] == PLACES or page[ENCODING] == PLACES_TOO
            known = not there or taken_at(source, at, stop, words, limit, part, itemsize)
            if not (by_place and known):
                return -1
        if there < page[COUNT]:
            part = out[before * itemsize : done * itemsize]
            if itemsize == 4:
                spread(part.view(np.uint32), valid[before:done], there)
            else:
                spread(part.view(np.uint64), valid[before:done], there)
    return row if done * itemsize == len(out) else -1


@kernel("void(i8[:, ::1], i8[:, ::1])")
def columns(chunks: Longs, pages: Longs) -> None:
    """Read each of ``chunks``, of whose ``pages`` `find` told."""
    for n in range(len(chunks)):
        chunk = chunks[n]
        first, itemsize = chunk[FIRST], chunk[ITEMSIZE]
        chunk[FOUND] = numbers(
            bytes_at(chunk[ADDRESS], chunk[BYTES]),
            pages[first : first + chunk[PAGES]],
            chunk[DEEP],
            ints_at(chunk[STARTS], chunk[LISTS]),
            bytes_at(chunk[OUT], itemsize * chunk[VALUES]),
            itemsize,
            bytes_at(chunk[VALID], chunk[VALUES] * (chunk[VALID] != 0)),
        )
