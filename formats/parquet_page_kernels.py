"""Kernels for the pages of a column of Parquet: their headers, and levels.

Each says when it met anything but plain and whole pages: then it has not read beyond its buffers,
and what it wrote is of no use.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pipeprof.formats.compiled import kernel
from pipeprof.formats.vectors import get, pointer

Bytes = npt.NDArray[np.uint8]
Longs = npt.NDArray[np.int64]

ABSENT = -(2**62)
"""In place of a field that a header does not have."""
NESTED = 8
"""The fields of the struct in a page's header follow its own, of which it has so many."""
PROMISED = 2 * NESTED + 1
"""How long its bytes will be, unpacked, by what is packed; `ABSENT`, where that does not say."""
FIELDS = PROMISED + 1
"""Numbers for each page: at 0 where its bytes begin, then its fields by their ids, `PROMISED`."""
PLAIN, SNAPPY, ZSTD = 0, 1, 2
"""Codecs."""
_STOP, _TRUE, _FALSE, _INT32, _INT64, _BINARY, _STRUCT = 0, 1, 2, 5, 6, 8, 12
_DATA, _DATA_V2 = 5, 8
_ZSTD_FRAME = 0xFD2FB528
_STATISTICS = ((_DATA, 5), (_DATA_V2, 8))


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


@kernel()
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
                return at if outer == fields[1] + _DATA else -1
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
        elif kind == _STRUCT and depth == 0 and last >= _DATA and not outer:
            depth, outer, last = 1, last, 0
        elif kind == _STRUCT and depth == 1 and (outer, last) in _STATISTICS:
            depth, within, last = 2, last, 0
        elif kind == _INT32 and (depth or last < _DATA):
            value, at = number_at(data, at, len(data))
            if at < 0:
                return -1
            fields[last + NESTED * depth] = (value >> 1) ^ -(value & 1)
        elif kind in (_TRUE, _FALSE) and depth:
            fields[last + NESTED] = np.int64(kind == _TRUE)
        else:
            return -1
    return -1


@kernel()
def promised(data: Bytes, at: int, stop: int, codec: int) -> int:
    """How long the packed bytes ``data[at:stop]`` say they will be."""
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


@kernel("i8(Array(u1, 1, 'C', True), i8, i8[:, ::1])")
def pages_of(data: Bytes, codec: int, pages: Longs) -> int:
    """Find the pages that ``data`` is, from its first byte to its last; how many, or -1: it has
    others, or more than ``pages`` has room for."""
    at, count = 0, 0
    while at < len(data):
        if count == len(pages):
            return -1
        page = pages[count]
        at = header(data, at, page)
        if at < 0 or page[2] < 0 or not 0 <= page[3] <= len(data) - at:
            return -1
        levels = 0
        if page[1] == 3:  # of the second version, which has levels before what is packed
            levels = page[NESTED + 5]
            if not 0 <= levels <= page[3] or page[NESTED + 6] != 0:
                return -1
        page[0] = at
        page[PROMISED] = promised(data, at + levels, at + page[3], codec)
        at += page[3]
        count += 1
    return count


@kernel("b1(Array(u1, 1, 'C', True), i8, i8, i8)")
def all_ones(data: Bytes, at: int, stop: int, count: int) -> bool:
    """Whether the runs of one-bit numbers in ``data[at:stop]`` begin with so many ones."""
    while count > 0:
        run, at = number_at(data, at, stop)
        if at < 0 or run < 2 or at == stop:
            return False
        length = run >> 1
        if not run & 1:
            if data[at] != 1:
                return False
            at, count = at + 1, count - length
            continue
        if length > stop - at:
            return False
        whole = min(length, count >> 3)
        for place in range(at, at + whole):
            if data[place] != 255:
                return False
        at, count = at + length, count - 8 * whole
        if whole < length and count > 0:
            rest = (1 << count) - 1
            if data[at - length + whole] & rest != rest:
                return False
            count = 0
    return True
