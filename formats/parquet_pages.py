"""The pages of a column chunk of Parquet: found, held to their checksums, and unpacked.

They are of the common kinds: values plain or by dictionary, in pages of either version,
uncompressed or packed by snappy or zstd. Whatever is unusual, or damaged, is for Arrow to
read or to refuse.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeprof.formats.compiled import kernels

_SNAPPY = "pipeprof.formats.parquet_snappy_kernel"
CODECS = ("UNCOMPRESSED", "SNAPPY", "ZSTD")
"""Of these it can be told beforehand how long a page will be; in the order of kernels' numbers."""
_MOST_PAGES, _LEAST_BYTES = 2**14, 2**6
"""Of chunks that are read together; and of a page, on the average."""

Numbers = npt.NDArray[Any]


class UnusualError(Exception):
    """Arrow shall see to it."""


class Chunk(NamedTuple):
    """A column of a row group, by the footer."""

    dtype: pa.DataType
    """Arrow's for it."""
    stored: str
    """The physical type, by Arrow's name for it."""
    codec: str
    deep: int
    """The highest level of definition, which is that of a value."""
    start: int
    """Byte of the file."""
    length: int
    """In bytes."""
    rows: int
    values: int
    """Of lists, those of all of them; else as many as rows."""


class Values(NamedTuple):
    """Of a page of no lists."""

    data: Numbers
    """Its bytes."""
    start: int
    """Which of them is the first of a value."""
    there: int
    """How many are not null."""
    valid: Numbers | None
    """Of each row 1, or 0 where it is null; ``None``: it is nowhere."""


def find(
    chunks: Sequence[Chunk], data: Sequence[pa.Buffer], kernel: Any
) -> tuple[list[list[int]], Numbers]:
    """The pages of column chunks, whose bytes these are: of each chunk what `kernel`, which is
    `parquet_page_kernels`, tells; and of all pages their numbers, to which that refers."""
    told = np.zeros((len(chunks), kernel.CHUNK), np.int64)
    told[:, : kernel.FIRST] = [
        (bytes_.address, bytes_.size, CODECS.index(chunk.codec), chunk.values)
        for chunk, bytes_ in zip(chunks, data, strict=True)
    ]
    most = 2 * len(chunks) + sum(bytes_.size for bytes_ in data) // _LEAST_BYTES
    pages = np.empty((min(_MOST_PAGES, most), kernel.FIELDS), np.int64)
    kernel.find(told, pages)
    return told.tolist(), pages


class Pages:
    """Of one column chunk: a dictionary perhaps, then values, as many as the footer counts.

    Raises `UnusualError`, as everything here.
    """

    def __init__(
        self, chunk: Chunk, data: pa.Buffer, told: Sequence[int], pages: Numbers, kernel: Any
    ) -> None:
        """By what `find` told."""
        first, count = told[kernel.FIRST], told[kernel.PAGES]
        if count < 1:
            raise UnusualError
        self._chunk, self.kernel = chunk, kernel
        self._bytes = np.frombuffer(data, np.uint8)
        self._table = pages[first : first + count]
        if told[kernel.CHECKED]:
            self._check()

    def _check(self) -> None:
        """The checksums of those that have one."""
        for start, _, _, length, checksum, *_ in self._table.tolist():
            packed = self._bytes[start : start + length].data
            if checksum != self.kernel.ABSENT and zlib.crc32(packed) != checksum % 2**32:
                raise UnusualError

    def quick(self) -> pa.Buffer | None:
        """Bytes in which pages that are packed by zstd are plain; their numbers say so from then
        on. ``None``: there are none."""
        kernel, parts, at = self.kernel, list[Numbers](), 0
        if self._chunk.codec != "ZSTD":
            return None
        for page in self._table:
            levels = page[kernel.START] + page[kernel.DEFINITIONS] + page[kernel.REPETITIONS]
            parts += (self._bytes[page[kernel.START] : levels], self.unpacked(page.tolist()))
            page[kernel.START], page[kernel.LENGTH] = at, page[kernel.SIZE]
            page[kernel.PACKED] = 0
            at += page[kernel.SIZE]
        return pa.py_buffer(np.concatenate(parts))

    def each(self) -> tuple[list[int] | None, list[list[int]]]:
        """The dictionary, if there is one, and the pages of values."""
        first, *others = pages = self._table.tolist()
        if first[self.kernel.TYPE] == self.kernel.DICTIONARY:
            return first, others
        return None, pages

    def values(self, page: Sequence[int], levels: Any, memory: Numbers | None = None) -> Values:
        """``levels``: `parquet_level_kernels`; ``memory``: as of `unpacked`."""
        kernel, deep, count = self.kernel, self._chunk.deep, page[self.kernel.COUNT]
        data = self.unpacked(page, memory)
        source, at, length = self._bytes, page[kernel.START], page[kernel.DEFINITIONS]
        apart = page[kernel.TYPE] == kernel.DATA_V2
        if apart and (page[kernel.REPETITIONS] or page[kernel.ROWS] != count):
            raise UnusualError
        if apart and not deep and length:
            raise UnusualError
        if not apart and deep:
            source, at, length = data, 4, int.from_bytes(data[:4].tobytes(), "little")
        if deep and at + length > len(source):
            raise UnusualError
        valid, there = None, count
        if deep and not levels.all_are(source, at, at + length, count, deep):
            valid = np.empty(count, np.uint8)
            there = levels.present(source, at, at + length, valid)
        if there < 0 or (apart and count - there != page[kernel.NULLS]):
            raise UnusualError
        return Values(data, 0 if apart or not deep else at + length, there, valid)

    def unpacked(self, page: Sequence[int], memory: Numbers | None = None) -> Numbers:
        """The bytes of a page, of one of the second version those behind its levels. Snappy is
        unpacked into ``memory``, which has room for it and its `SLACK`, if it is given."""
        kernel = self.kernel
        levels = page[kernel.DEFINITIONS] + page[kernel.REPETITIONS]
        start, length = page[kernel.START] + levels, page[kernel.LENGTH] - levels
        data = self._bytes[start : start + length]
        if not page[kernel.PACKED]:
            return data
        size = page[kernel.SIZE] - levels
        snappy = kernels(_SNAPPY)
        if self._chunk.codec != "SNAPPY" or snappy is None:
            return np.frombuffer(_codec(self._chunk.codec).decompress(data, size), np.uint8)
        memory = np.empty(size + snappy.SLACK, np.uint8) if memory is None else memory
        if not snappy.unsnapped(data, 0, length, memory, size):
            raise UnusualError
        return memory[:size]


@cache
def _codec(name: str) -> pa.Codec:
    return pa.Codec(name.lower())
