"""Copy many values out of a buffer at once, wherever each begins."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeprof.formats.base import Buffer

Octets = npt.NDArray[np.uint8]
Places = npt.NDArray[np.int64]
"""Offsets or counts of bytes in a buffer, as int64."""
MOST_BYTES = 2**31 - 1
"""The most bytes that an Arrow array of binary can hold."""
_FEW_BYTES = 64
"""Size in bytes of a value below which one index per byte costs less than one slice per value."""


def at_each_byte(data: Buffer, dtype: str) -> npt.NDArray[Any]:
    """Return the number of this type at each byte. The shape is (bytes - size of a number + 1,)."""
    count = max(len(data) - np.dtype(dtype).itemsize + 1, 0)
    numbers: npt.NDArray[Any] = np.ndarray((count,), dtype, data, 0, (1,))
    return numbers


def unaligned(data: Buffer, dtype: str, offsets: Places) -> npt.NDArray[Any]:
    """Return the numbers of this type at any offsets."""
    numbers: npt.NDArray[Any] = at_each_byte(data, dtype)[offsets]
    return numbers


def gathered(data: Buffer, at: Places, size: Places) -> Octets:
    """Return the ``size`` bytes at each of ``at``, one after another."""
    total = int(size.sum())
    if total > _FEW_BYTES * len(at):
        # Arrow's pool keeps what is freed: fresh memory takes longer than the copy
        copy: Octets = np.frombuffer(pa.allocate_buffer(total), np.uint8)
        source, target, to = memoryview(data), copy.data, 0
        for start, length in zip(at.tolist(), size.tolist(), strict=True):
            target[to : to + length] = source[start : start + length]
            to += length
        return copy
    moved = at - (np.cumsum(size) - size)
    octets: Octets = np.frombuffer(data, np.uint8).take(np.arange(total) + np.repeat(moved, size))
    return octets


def binary_array(data: Buffer, at: Places, size: Places) -> pa.Array:
    """Return the ``size`` bytes at each of ``at`` as an array of binary. Together they must be at
    most `MOST_BYTES`."""
    ends = np.zeros(len(at) + 1, np.int32)
    np.cumsum(size, out=ends[1:])
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(gathered(data, at, size))]
    return pa.Array.from_buffers(pa.binary(), len(at), buffers)
