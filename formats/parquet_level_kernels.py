"""Kernels for the levels in a page of Parquet: whether values are null, and where lists begin.

They are runs of numbers of one or two bits: the same many times, or packed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pipeprof.formats.compiled import kernel
from pipeprof.formats.parquet_page_kernels import number_at
from pipeprof.formats.vectors import first_one, ones, pointer, store

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int32]
Numbers = npt.NDArray[Any]

# eight bits to eight bytes
_EACH, _ITS_BIT = np.uint64(0x0101010101010101), np.uint64(0x8040201008040201)
_CARRY, _SEVEN = np.uint64(0x7F7F7F7F7F7F7F7F), np.uint64(7)


@kernel("b1(Array(u1, 1, 'C', True), i8, i8, i8, i8)")
def all_are(data: Bytes, at: int, stop: int, count: int, level: int) -> bool:
    """Whether ``data[at:stop]`` begins with so many levels that are the highest, ``level``."""
    width = 1 if level == 1 else 2
    byte = level * (85 if width == 2 else 255)
    while count > 0:
        run, at = number_at(data, at, stop)
        if at < 0 or run < 2 or at == stop:
            return False
        length = run >> 1
        if not run & 1:
            if data[at] != level:
                return False
            at, count = at + 1, count - length
            continue
        if length * width > stop - at:
            return False
        bits = min(8 * length, count) * width
        for place in range(at, at + (bits >> 3)):
            if data[place] != byte:
                return False
        rest = (1 << (bits & 7)) - 1
        if rest and (data[at + (bits >> 3)] ^ byte) & rest:
            return False
        at, count = at + length * width, count - 8 * length
    return True


@kernel("i8(Array(u1, 1, 'C', True), i8, i8, u1[::1])")
def present(data: Bytes, at: int, stop: int, valid: Bytes) -> int:
    """Fill ``valid`` with levels of one bit that ``data[at:stop]`` begins with: 1, or 0 of a null.
    How many are 1; -1: levels are lacking."""
    done, found = 0, 0
    while done < len(valid):
        run, at = number_at(data, at, stop)
        if at < 0 or run < 2 or at == stop:
            return -1
        length = run >> 1
        if not run & 1:
            if data[at] > 1:
                return -1
            end = min(done + length, len(valid))
            valid[done:end] = data[at]
            at, found = at + 1, found + (end - done) * np.int64(data[at])
        else:
            if length > stop - at:
                return -1
            end = min(done + 8 * length, len(valid))
            for n in range(done, end, 8):
                bits = np.uint64(data[at + (n - done >> 3)])
                if n + 8 <= end:
                    store(pointer(valid), n, (bits * _EACH & _ITS_BIT) + _CARRY >> _SEVEN & _EACH)
                    found += ones(bits)
                    continue
                for place in range(end - n):
                    valid[n + place] = bits >> np.uint64(place) & np.uint64(1)
                    found += np.int64(valid[n + place])
            at += length
        done = end
    return found


@kernel("void(u4[::1], u1[::1], i8)", "void(u8[::1], u1[::1], i8)")
def spread(values: Numbers, valid: Bytes, count: int) -> None:
    """Move the first ``count`` of ``values`` to where ``valid`` is 1, which is so many times; 0 to
    where it is not."""
    for n in range(len(valid) - 1, -1, -1):
        values[n] = values[max(count - 1, 0)] * valid[n]
        count -= np.int64(valid[n])


@kernel("void(i4[::1], u1[::1], i8)")
def spread_ends(ends: Ints, valid: Bytes, count: int) -> None:
    """The same of where words end, ``ends[0]`` being where the first begins: a null has none."""
    for n in range(len(valid) - 1, -1, -1):
        ends[n + 1] = ends[count]
        count -= np.int64(valid[n])


@kernel("i8(Array(u1, 1, 'C', True), i8, i8, i8, i8, i4[::1], i8)")
def begins(data: Bytes, at: int, stop: int, count: int, first: int, starts: Ints, row: int) -> int:
    """Note in ``starts``, from ``row`` on, those of so many values, counted from ``first``, whose
    level of one bit is 0, since they begin a list. Which row is next; -1: levels are lacking, or
    there are more rows."""
    end = first + count
    while first < end:
        run, at = number_at(data, at, stop)
        if at < 0 or run < 2 or at == stop:
            return -1
        length = run >> 1
        if not run & 1:
            until = min(first + length, end)
            if data[at] > 1 or (not data[at] and until - first > len(starts) - row):
                return -1
            if not data[at]:
                for n in range(first, until):
                    starts[row] = n
                    row += 1
            at, first = at + 1, until
            continue
        if length > stop - at:
            return -1
        until = min(first + 8 * length, end)
        for n in range(first, until, 8):
            bits = ~np.int64(data[at + (n - first >> 3)]) & (1 << min(8, until - n)) - 1
            zeros = np.uint64(bits)
            while zeros:
                if row == len(starts):
                    return -1
                starts[row] = n + first_one(zeros)
                row += 1
                zeros &= zeros - np.uint64(1)
        at, first = at + length, until
    return row
