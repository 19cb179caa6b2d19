"""Where the values of a block of `tf.train.Example` records lie, and columns made of them."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeprof.formats import example
from pipeprof.formats.base import Buffer
from pipeprof.formats.compiled import kernels
from pipeprof.formats.example_scan import BYTES, EMPTY, FLOAT, INT, Octets, require, varints
from pipeprof.formats.types import convert
from pipeprof.formats.words import MASKS, PAD, Places, Words, words_of

_FEW_BYTES = 64
"""Of a value: up to here one index for each byte costs less than one slice for each value."""
_MOST_BYTES = 2**31 - 1
"""Of all values of a column: what an Arrow array of binary can hold."""


def compiled() -> ModuleType | None:
    """The kernels, where there is numba."""
    return kernels("pipeprof.formats.example_kernel")


class Cells:
    """The records of a block as a table; each array of shape (columns, rows)."""

    def __init__(self, data: Buffer, code: Octets, bits: Words, first: int) -> None:
        self._data = data
        self._code = code
        """A kind; `EMPTY` beside it: the list is there and holds nothing; 0: there is no list."""
        self._bits = bits
        """Of a column of single values an int, or a float; else, and of bytes, where they are in
        ``data``: place << 32 | bytes."""
        self._first = first
        """The number in its object of the first record."""
        self._any: list[int] = np.bitwise_or.reduce(code, axis=1).tolist()
        self._every: list[int] = np.bitwise_and.reduce(code, axis=1).tolist()

    def column(self, place: int, field: pa.Field, listed: bool) -> pa.Array | None:
        """``None``: the rows hold several kinds. Raises `Refused`, `SchemaMismatch`."""
        codes = self._any[place]
        if codes == 0:
            return pa.nulls(self._code.shape[1], field.type)
        kind = codes & ~EMPTY
        if kind not in (BYTES, FLOAT, INT):
            return None
        if not listed and codes == kind == self._every[place]:
            return convert(field.name, _singles(kind, self._data, self._bits[place]), field.type)
        held = self._code[place] == kind
        bits, counts = self._bits[place][held], held.astype(np.int64)
        if listed:
            values, counts[held] = _lists(kind, self._data, bits)
        else:
            values = _singles(kind, self._data, bits)
        return example.shape(values, counts, field, self._first)


def _singles(kind: int, data: Buffer, bits: Words) -> pa.Array:
    if kind == FLOAT:
        return pa.array(bits.astype(np.uint32).view(np.float32))
    if kind == INT:
        return pa.array(bits.view(np.int64))
    sizes = _sizes(bits)
    require(int(sizes.sum()) <= _MOST_BYTES)
    ends = np.zeros(len(bits) + 1, np.int32)
    np.cumsum(sizes, out=ends[1:])
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(_gathered(data, bits))]
    return pa.Array.from_buffers(pa.binary(), len(bits), buffers)


def _lists(kind: int, data: Buffer, spans: Words) -> tuple[pa.Array, Places]:
    """All values of these lists, and how many are in each. Raises `Refused`."""
    if kind == FLOAT:
        return pa.array(_gathered(data, spans).view(np.float32)), _sizes(spans) >> 2
    if kind == INT:
        numbers, counts = _ints(data, spans)
        return pa.array(numbers.view(np.int64)), counts
    return _singles(kind, data, spans), np.ones(len(spans), np.int64)


def _sizes(spans: Words) -> Places:
    sizes: Places = (spans & MASKS[4]).astype(np.int64)
    return sizes


def _gathered(data: Buffer, spans: Words) -> Octets:
    """The bytes of all spans, end to end."""
    sizes = _sizes(spans)
    total = int(sizes.sum())
    found: Octets = _memory(total, np.uint8)
    if kernel := compiled():
        kernel.gather(np.frombuffer(data, np.uint8), spans, found)
        return found
    at = (spans >> np.uint64(32)).astype(np.int64)
    if total > _FEW_BYTES * len(spans):
        source, target, to = memoryview(data), found.data, 0
        for start, size in zip(at.tolist(), sizes.tolist(), strict=True):
            target[to : to + size] = source[start : start + size]
            to += size
        return found
    moved = at - (np.cumsum(sizes) - sizes)
    octets: Octets = np.frombuffer(data, np.uint8).take(np.arange(total) + np.repeat(moved, sizes))
    return octets


def _memory(count: int, dtype: type[np.generic]) -> npt.NDArray[Any]:
    """Of Arrow's pool, which keeps what is freed: fresh memory costs more than what is done in
    it."""
    return np.frombuffer(pa.allocate_buffer(count * np.dtype(dtype).itemsize), dtype)


def _ints(data: Buffer, spans: Words) -> tuple[Words, Places]:
    """The numbers in all spans, and how many are in each. Raises `Refused`."""
    sizes = _sizes(spans)
    if kernel := compiled():
        numbers, counts = _memory(int(sizes.sum()), np.uint64), np.empty(len(spans), np.int64)
        found = kernel.ints(np.frombuffer(data, np.uint8), spans, counts, numbers)
        require(found >= 0)
        return numbers[:found], counts
    octets = _gathered(data, spans)
    stops = np.cumsum(sizes)
    last = np.flatnonzero(octets < 128)
    ends = np.searchsorted(last, stops)  # numbers that end before each span does
    require(bool((octets[stops[sizes > 0] - 1] < 128).all()))
    numbers = octets[last].astype(np.uint64)
    before = np.concatenate([[-1], last[:-1]])
    long = np.flatnonzero(last - before > 1)
    if len(long):
        at, size = before[long] + 1, (last - before)[long]
        words = words_of(octets.tobytes() + PAD)
        numbers[long], whole = varints(words, at, size)
        require(bool(whole.all()))
    return numbers, np.diff(ends, prepend=0)
