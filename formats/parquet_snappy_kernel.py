"""The kernel that unpacks what snappy has packed: `format_description.txt` of
https://github.com/google/snappy.

Arrow's codec is as quick, but takes a call from Python and memory of its own for each page.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pipeprof.formats.compiled import kernel
from pipeprof.formats.parquet_page_kernels import little, number_at
from pipeprof.formats.vectors import apart, load, move, pointer, store

Bytes = npt.NDArray[np.uint8]

SLACK = 64
"""Bytes behind what is unpacked, which is written eight at a time."""
_NEAR, _FAR, _FARTHEST = 1, 2, 3
"""Copies of what came before, by the size of the distance: 1, 2, 4 bytes. 0: bytes that are new."""
_SHORT = 16
_QUICK = 24
"""From the first byte of an element with no more than `_SHORT` new ones, so many may be read."""


@kernel()
def as_it_is(data: Bytes, at: int, stop: int, size: int) -> int:
    """Where in ``data[at:stop]`` the bytes lie that it would be unpacked to, where snappy found
    nothing to pack; else -1."""
    _, at = number_at(data, at, stop)
    if at < 0 or at == stop or data[at] & 3:
        return -1
    length, at = np.int64(data[at] >> 2) + 1, at + 1
    if length > 60:
        more = min(length - 60, stop - at)
        length, at = np.int64(little(pointer(data), at, more)) + 1, at + more
    return at if length == size == stop - at else -1


@kernel()
def repeat(out: Bytes, to: int, back: int, length: int) -> None:
    """Copy what begins less than eight bytes before ``to``, and so is a part of the copy."""
    for n in range(to, to + 8):
        out[n] = out[n - back]
    target, whole = pointer(out), (7 + back) // back * back
    for n in range(to + 8, to + length, 8):
        store(target, n, load(target, n - whole))


@kernel("b1(Array(u1, 1, 'C', True), i8, i8, u1[::1], i8)")
def unsnapped(data: Bytes, at: int, stop: int, out: Bytes, size: int) -> bool:
    """Unpack ``data[at:stop]`` into ``out``, which has `SLACK` bytes more than ``size``. Whether
    it is whole, and so many bytes."""
    source, target, to = pointer(data), pointer(out), 0
    between, quick = apart(source, target), len(data) - _QUICK
    _, at = number_at(data, at, stop)
    while 0 <= at < stop:
        tag = np.int64(data[at])
        kind, length, at = tag & 3, (tag >> 2) + 1, at + 1
        if at <= quick:
            word = np.int64(load(source, at))
        else:
            word = np.int64(little(source, at, min(8, stop - at)))
        if kind:
            back = word & 0xFFFF
            if kind == _NEAR:
                length, back = 4 + (tag >> 2 & 7), word & 0xFF | tag >> 5 << 8
            elif kind == _FARTHEST:
                back, at = word & 0xFFFFFFFF, at + 1
            begin, at = between + to - back, at + kind
            if not 0 < back <= to:
                return False
        else:
            if length > 60:
                more = length - 60
                length, at = (word & (1 << 8 * more) - 1) + 1, at + more
            begin, at, back = at, at + length, _SHORT
        if at > stop or length > size - to:
            return False
        if not kind and (length > _SHORT or begin > quick):
            move(source, begin, length, target, to)
        elif back < 8:
            repeat(out, to, back, length)
        else:
            store(target, to, load(source, begin))
            store(target, to + 8, load(source, begin + 8))
            for n in range(16, length, 8):
                store(target, to + n, load(source, begin + n))
        to += length
    return at == stop and to == size
