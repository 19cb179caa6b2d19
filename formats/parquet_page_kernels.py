"""Kernels for the pages of a column of Parquet: their headers, and levels.

Each says when it met anything but plain and whole pages: then it has not read beyond its buffers,
and what it wrote is of no use.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pipeprof.formats.compiled import kernel
from pipeprof.formats.vectors import bytes_at, get, pointer

Bytes = npt.NDArray[np.uint8]
Longs = npt.NDArray[np.int64]

ABSENT = -(2**62)
"""In place of a field that a header does not have."""
NESTED = 8
"""The fields of the struct in a page's header follow its own, of which it has so many."""
FIELDS = 2 * NESTED + 1
"""Numbers for each page: where its bytes begin, and its fields by their ids."""
START, TYPE, SIZE, LENGTH, CHECKSUM = range(5)
"""Of a page; `SIZE` is what it is unpacked."""
COUNT, NULLS, ROWS, ENCODING, DEFINITIONS, REPETITIONS, PACKED = (NESTED + n for n in range(1, 8))
"""As pages of the second version have them, with the bytes of levels that are before what is
packed; the others are given the same."""
DATA, DICTIONARY, DATA_V2 = 0, 2, 3
"""Types of pages."""
PLAIN, PLACES, RLE, PLACES_TOO = 0, 2, 3, 8
"""Encodings: values, or in runs places in a dictionary."""
NONE, SNAPPY, ZSTD = 0, 1, 2
"""Codecs."""
ADDRESS, BYTES, CODEC, VALUES, FIRST, PAGES, CHECKED, CHUNK = range(8)
"""Of a column chunk: where its bytes are in memory, how many they are, how they are packed, and how
many values the footer counts; then what `find` tells: which of the pages is its first, how many are
its own, or -1, and whether any has a checksum. `CHUNK`: how many numbers that is."""
_STOP, _TRUE, _FALSE, _INT32, _INT64, _BINARY, _STRUCT = 0, 1, 2, 5, 6, 8, 12
_OF_DATA, _OF_DATA_V2 = 5, 8
"""Structs in a header."""
_ZSTD_FRAME = 0xFD2FB528
_MOST_TIMES = 22
"""As much snappy can unpack to: 64 bytes from three."""
_STATISTICS = ((_OF_DATA, 5), (_OF_DATA_V2, 8))


@kernel()
def number_at(data: Bytes, at: int, stop: int) -> tuple[int, int]:
    """A varint below 2**35, and where it ends: -1, where it does not."""
    value, shift = 0, 0
    while at < stop and shift < 35:
        byte = np.int64(data[at])
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    return 0, -1


@kernel()
def little(source: Any, at: int, size: int) -> Any:
    """The number that these bytes are, the first the lowest."""
    value = np.uint64(0)
    for place in range(size):
        value |= np.uint64(get(source, at + place)) << np.uint64(8 * place)
    return value


@kernel()
def skipped(data: Bytes, at: int, kind: int) -> int:
    """Where a value within statistics ends; -1: not within the data, or not of a simple kind."""
    if kind in (_TRUE, _FALSE):
        return at
    if kind == _BINARY:
        length, at = number_at(data, at, len(data))
        return at + length if 0 <= at <= len(data) - length else -1
    if kind in (_INT32, _INT64):
        for end in range(at, min(at + 10, len(data))):
            if data[end] < 0x80:
                return end + 1
    return -1


@kernel("i8(Array(u1, 1, 'C', True), i8, i8[::1])")
def header(data: Bytes, at: int, fields: Longs) -> int:
    """Read the header at ``at`` into ``fields``, and say where it ends; -1: it is unusual."""
    fields[:] = ABSENT
    depth, last = 0, 0  # in how many structs, and the id of the field before
    outer, within = 0, 0  # the struct's own id, and that of the statistics within it
    while at < len(data):
        byte = np.int64(data[at])
        at += 1
        if byte == _STOP:
            if depth == 0:
                return at if outer == fields[TYPE] + _OF_DATA else -1
            depth -= 1
            last = within if depth else outer
            continue
        kind, step = byte & 15, byte >> 4
        last += step
        if not step or last > NESTED:
            return -1
        if depth == 2:
            at = skipped(data, at, kind)
            if at < 0:
                return -1
        elif kind == _STRUCT and depth == 0 and last >= _OF_DATA and not outer:
            depth, outer, last = 1, last, 0
        elif kind == _STRUCT and depth == 1 and (outer, last) in _STATISTICS:
            depth, within, last = 2, last, 0
        elif kind == _INT32 and (depth or last < _OF_DATA):
            value, at = number_at(data, at, len(data))
            if at < 0:
                return -1
            fields[last + NESTED * depth] = (value >> 1) ^ -(value & 1)
        elif kind in (_TRUE, _FALSE) and depth:
            fields[last + NESTED] = np.int64(kind == _TRUE)
        else:
            return -1
    return -1


@kernel("i8(Array(u1, 1, 'C', True), i8, i8, i8)")
def promised(data: Bytes, at: int, stop: int, codec: int) -> int:
    """How long the packed bytes ``data[at:stop]`` say they will be; `ABSENT`: they do not."""
    if codec == SNAPPY:
        value, at = number_at(data, at, stop)
        return value if at >= 0 else ABSENT
    if codec == ZSTD and stop - at > 5 and little(pointer(data), at, 4) == _ZSTD_FRAME:
        flags = np.int64(data[at + 4])
        single, sized = flags >> 5 & 1, flags >> 6
        at, size = at + 6 - single, 1 << sized
        if flags & 3 or not (single or sized) or size > stop - at:
            return ABSENT  # it needs a dictionary, or does not say
        value = int(little(pointer(data), at, size))
        return value + 256 if sized == 1 else value
    return ABSENT


@kernel("b1(i8[::1], i8)")
def is_usual(page: Longs, codec: int) -> bool:
    """Whether a page's header is of a common kind, and agrees with itself. What the first version
    does not have is added."""
    kind, count = page[TYPE], page[COUNT]
    packed = codec != NONE and page[PACKED] != 0
    if kind == DATA_V2:
        usual = count > 0 and 0 <= page[NULLS] <= count
    elif kind == DATA:
        usual = page[NESTED + 3] == RLE and page[NESTED + 4] == RLE and count > 0
        page[ENCODING] = page[NESTED + 2]
    else:
        usual = kind == DICTIONARY and count >= 0 and page[NESTED + 2] in (PLAIN, PLACES)
    if kind != DATA_V2:
        page[ROWS], page[DEFINITIONS], page[REPETITIONS], packed = ABSENT, 0, 0, codec != NONE
    page[PACKED] = packed
    if page[DEFINITIONS] < 0 or page[REPETITIONS] < 0:
        return False
    levels = page[DEFINITIONS] + page[REPETITIONS]
    return bool(usual and levels <= min(page[LENGTH], page[SIZE]))


@kernel("i8(Array(u1, 1, 'C', True), i8, i8[:, ::1])")
def pages_of(data: Bytes, codec: int, pages: Longs) -> int:
    """Find the pages that ``data`` is, from its first byte to its last: a dictionary perhaps, and
    values; how many, or -1: it has others, or more than ``pages`` has room for."""
    at, count = 0, 0
    while at < len(data):
        if count == len(pages):
            return -1
        page = pages[count]
        at = header(data, at, page)
        if at < 0 or page[SIZE] < 0 or not 0 <= page[LENGTH] <= len(data) - at:
            return -1
        if not is_usual(page, codec) or (page[TYPE] == DICTIONARY and count):
            return -1
        levels = page[DEFINITIONS] + page[REPETITIONS]
        size, length = page[SIZE] - levels, page[LENGTH] - levels
        page[START] = at
        at += page[LENGTH]
        if not page[PACKED]:
            size_told = length
        else:
            size_told = promised(data, at - length, at, codec)
            if codec == SNAPPY and size > _MOST_TIMES * length:
                return -1
        if size != size_told:
            return -1
        count += 1
    return count


@kernel("void(i8[:, ::1], i8[:, ::1])")
def find(chunks: Longs, pages: Longs) -> None:
    """The pages of each of ``chunks``, those of one behind those of the other, and what there is to
    say of them; -1 too, where they have not the values that the footer counts."""
    first = 0
    for n in range(len(chunks)):
        chunk = chunks[n]
        data = bytes_at(chunk[ADDRESS], chunk[BYTES])
        count = pages_of(data, chunk[CODEC], pages[first:])
        values = 0
        chunk[FIRST], chunk[CHECKED] = first, 0
        for _ in range(count):
            if pages[first, TYPE] != DICTIONARY:
                values += pages[first, COUNT]
            if pages[first, CHECKSUM] != ABSENT:
                chunk[CHECKED] = 1
            first += 1
        chunk[PAGES] = count if values == chunk[VALUES] else -1
