"""The common columns of Parquet, from the bytes of their pages: flat numbers and words, plain or
by dictionary, without nulls.

Arrow could decode them, and does what is not like that: whatever is unusual here, or damaged, is
for Arrow to read or to refuse. But it takes a dictionary's values one by one, through buffers of
its own; here a kernel writes each number once, where it stays.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeprof.formats.compiled import kernels

_PAGES = "pipeprof.formats.parquet_page_kernels"
_VALUES = "pipeprof.formats.parquet_kernels"
_DATA, _DICTIONARY, _DATA_V2 = 0, 2, 3
_PLAIN, _PLAIN_DICTIONARY, _RLE, _RLE_DICTIONARY = 0, 2, 3, 8
_CODECS = ("UNCOMPRESSED", "SNAPPY", "ZSTD")
"""Of these it can be told beforehand how long a page will be."""
_NUMBERS = {
    "INT32": ("int8", "int16", "int32", "uint8", "uint16", "uint32"),
    "INT64": ("int64", "uint64"),
    "FLOAT": ("float",),
    "DOUBLE": ("double",),
}
"""Stored type → Arrow's types that are its values, or their lower bits."""
_STORED = {"INT32": np.uint32, "INT64": np.uint64, "FLOAT": np.uint32, "DOUBLE": np.uint64}
_MOST_BYTES = 2**31 - 1
_MOST_PAGES = 2**12

Numbers = npt.NDArray[Any]


class _UnusualError(Exception):
    """Arrow shall see to it."""


@dataclass(frozen=True)
class Chunk:
    """A column of a row group, by the footer."""

    dtype: pa.DataType
    """Arrow's for it."""
    stored: str
    """The physical type, by Arrow's name for it."""
    codec: str
    nullable: bool
    start: int
    """Byte of the file."""
    length: int
    """In bytes."""
    rows: int


def usual(dtype: pa.DataType, stored: str) -> bool:
    """Whether values of this physical type may be read here, to become ``dtype``."""
    if stored == "BYTE_ARRAY":
        return bool(dtype in (pa.string(), pa.binary()))
    return str(dtype) in _NUMBERS.get(stored, ())


def decoded(chunk: Chunk, data: pa.Buffer) -> pa.Array | None:
    """The column whose bytes these are; ``None``: Arrow shall read it, or say what is wrong."""
    headers, kernel = kernels(_PAGES), kernels(_VALUES)
    if headers is None or kernel is None or chunk.codec not in _CODECS:
        return None
    try:
        pages = _Pages(chunk, data, headers)
        return (_words if chunk.stored == "BYTE_ARRAY" else _numbers)(chunk, pages, kernel)
    except (_UnusualError, pa.ArrowException, OSError):
        return None


class _Page(NamedTuple):
    rows: slice
    """Of the column."""
    encoding: int
    header: Sequence[int]


class _Pages:
    """Of one column chunk: a dictionary perhaps, then data, with all the column's rows."""

    def __init__(self, chunk: Chunk, data: pa.Buffer, kernel: Any) -> None:
        self._chunk, self._data, self._kernel = chunk, data, kernel
        self._codec = _codec(chunk.codec)
        table = np.empty((min(_MOST_PAGES, len(data) // 16 + 1), kernel.FIELDS), np.int64)
        count = kernel.pages_of(np.frombuffer(data, np.uint8), _CODECS.index(chunk.codec), table)
        headers = table[: max(0, count)].tolist()
        self._dictionary = headers.pop(0) if headers and headers[0][1] == _DICTIONARY else None
        self.data: list[_Page] = []
        rows = 0
        for header in headers:
            if header[1] == _DATA:
                count, encoding, *levels = header[9:13]
                plain = levels == [_RLE, _RLE]
            else:
                count, nulls, same, encoding = header[9:13]
                plain = header[1] == _DATA_V2 and nulls == 0 and count == same
            if not plain or count <= 0:
                raise _UnusualError
            self.data.append(_Page(slice(rows, rows + count), encoding, header))
            rows += count
        if rows != chunk.rows:
            raise _UnusualError

    def dictionary(self) -> tuple[Numbers, int]:
        """Its bytes, and how many values they are; of none if there is no dictionary."""
        header = self._dictionary
        if header is None:
            return np.empty(0, np.uint8), 0
        if header[9] < 0 or header[10] not in (_PLAIN, _PLAIN_DICTIONARY):
            raise _UnusualError
        return self._unpacked(header, 0), header[9]

    def values(self, page: _Page) -> tuple[Numbers, int]:
        """The bytes of a page, and where its values begin in them."""
        header, count = page.header, page.rows.stop - page.rows.start
        if header[1] == _DATA_V2:
            levels, start = header[13], header[0]
            if self._chunk.nullable:
                self._check_levels(np.frombuffer(self._data, np.uint8), start, levels, count)
            elif levels:
                raise _UnusualError
            return self._unpacked(header, levels), 0
        data = self._unpacked(header, 0)
        if not self._chunk.nullable:
            return data, 0
        levels = int.from_bytes(data[:4].tobytes(), "little")
        self._check_levels(data, 4, levels, count)
        return data, 4 + levels

    def _check_levels(self, data: Numbers, at: int, length: int, count: int) -> None:
        """None may be null."""
        if at + length > len(data) or not self._kernel.all_ones(data, at, at + length, count):
            raise _UnusualError

    def _unpacked(self, header: Sequence[int], levels: int) -> Numbers:
        """What follows so many bytes of levels."""
        data = self._data.slice(header[0], header[3])
        if header[4] != self._kernel.ABSENT and zlib.crc32(data) != header[4] % 2**32:
            raise _UnusualError
        data, size = data.slice(levels), header[2] - levels
        if self._codec is not None and (header[1] != _DATA_V2 or header[15] != 0):
            if header[self._kernel.PROMISED] != size:
                raise _UnusualError
            data = self._codec.decompress(data, size)
        elif len(data) != size:
            raise _UnusualError
        return np.frombuffer(data, np.uint8)


@cache
def _codec(name: str) -> pa.Codec | None:
    return None if name == "UNCOMPRESSED" else pa.Codec(name.lower())


def _numbers(chunk: Chunk, pages: _Pages, kernel: Any) -> pa.Array:
    dtype, stored = np.dtype(chunk.dtype.to_pandas_dtype()), _STORED[chunk.stored]
    memory = pa.allocate_buffer(chunk.rows * dtype.itemsize)
    out = np.frombuffer(memory, f"u{dtype.itemsize}")
    data, count = pages.dictionary()
    if len(data) != count * stored().itemsize:
        raise _UnusualError
    # kernels want it aligned, and take it for writable
    dictionary = np.require(
        data.view(stored).astype(out.dtype, copy=False), requirements=["A", "W"]
    )
    for page in pages.data:
        part = out[page.rows]
        data, at = pages.values(page)
        if page.encoding == _PLAIN:
            if len(data) - at != len(part) * stored().itemsize:
                raise _UnusualError
            part[:] = data[at:].view(stored)
            continue
        places = _places(page, data, at, count, kernel)
        if out.itemsize < 4:
            part[:] = dictionary[places]
        else:
            kernel.gather(dictionary, places, part)
    return pa.Array.from_buffers(chunk.dtype, chunk.rows, [None, memory], 0)


def _places(page: _Page, data: Numbers, at: int, count: int, kernel: Any) -> Numbers:
    """In a dictionary of ``count`` values."""
    places = np.empty(page.rows.stop - page.rows.start, np.int32)
    known = page.encoding in (_PLAIN_DICTIONARY, _RLE_DICTIONARY)
    if not known or not kernel.unpacked(data, at, count, places):
        raise _UnusualError
    return places


def _words(chunk: Chunk, pages: _Pages, kernel: Any) -> pa.Array:
    data, count = pages.dictionary()
    if not 4 * count <= len(data) <= _MOST_BYTES - 4:
        raise _UnusualError
    starts = np.empty(count + 1, np.int32)
    if not kernel.begin(data, starts):
        raise _UnusualError
    known, size = data, 0
    found: dict[int, Numbers] = {}
    for number, page in enumerate(pages.data):
        if page.encoding == _PLAIN:
            size += page.header[2]
        else:
            found[number] = _places(page, *pages.values(page), count, kernel)
            size += kernel.size_of(starts, found[number])
    if size > _MOST_BYTES:
        raise _UnusualError
    ends, memory = pa.allocate_buffer(4 * chunk.rows + 4), pa.allocate_buffer(size + kernel.SLACK)
    places, out = np.frombuffer(ends, np.int32), np.frombuffer(memory, np.uint8)
    places[0] = 0
    for number, page in enumerate(pages.data):
        part = places[page.rows.start : page.rows.stop + 1]
        if page.encoding != _PLAIN:
            kernel.gather_words(known, starts, found.pop(number), part, out)
        elif not kernel.words(*pages.values(page), part, out):
            raise _UnusualError
    used = memory.slice(0, int(places[-1]))
    return pa.Array.from_buffers(chunk.dtype, chunk.rows, [None, ends, used], 0)
