"""Kernels that follow places in a dictionary of Parquet, which are runs of numbers of a few bits:
the same many times, or packed.

They say when they met anything but whole runs of places that are there: then they have not read
beyond their buffers, and what they wrote is of no use.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pipeprof.formats.compiled import kernel
from pipeprof.formats.parquet_page_kernels import little, number_at
from pipeprof.formats.vectors import get, load, pointer, put_value

Bytes = npt.NDArray[np.uint8]
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
