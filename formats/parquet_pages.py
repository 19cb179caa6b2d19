"""The pages of a column chunk of Parquet: found, held to their checksums, and unpacked.

They are of the common kinds: values plain or by dictionary, without nulls, in pages of either
version, uncompressed or packed by snappy or zstd. Whatever is unusual, or damaged, is for Arrow to
read or to refuse.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeprof.formats.compiled import kernels

_SNAPPY = "pipeprof.formats.parquet_snappy_kernel"
CODECS = ("UNCOMPRESSED", "SNAPPY", "ZSTD")
"""Of these it can be told beforehand how long a page will be; in the order of kernels' numbers."""
_MOST_PAGES = 2**12

Numbers = npt.NDArray[Any]


class UnusualError(Exception):
    """Arrow shall see to it."""


@dataclass(frozen=True)
class Chunk:
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


class Pages:
    """Of one column chunk: a dictionary perhaps, then values, as many as the footer counts."""

    def __init__(self, chunk: Chunk, data: pa.Buffer, kernel: Any) -> None:
        """``kernel``: `parquet_page_kernels`, which says what the numbers of a page are. Raises
        `UnusualError`, as everything here."""
        self._chunk, self.kernel = chunk, kernel
        self._bytes = np.frombuffer(data, np.uint8)
        room = np.empty((min(_MOST_PAGES, len(data) // 16 + 1), kernel.FIELDS), np.int64)
        count = kernel.pages_of(self._bytes, CODECS.index(chunk.codec), room)
        if count < 1:
            raise UnusualError
        self._table = room[:count]
        if (self._table[:, kernel.CHECKSUM] != kernel.ABSENT).any():
            self._check()
        first = self._table[0].tolist()
        self.dictionary = first if first[kernel.TYPE] == kernel.DICTIONARY else None
        data_pages = self._table if self.dictionary is None else self._table[1:]
        if int(data_pages[:, kernel.COUNT].sum()) != chunk.values:
            raise UnusualError
        self.data: Numbers = data_pages
        """Of each page that has values its numbers."""

    def _check(self) -> None:
        """The checksums of those that have one."""
        for start, _, _, length, checksum, *_ in self._table.tolist():
            packed = self._bytes[start : start + length].data
            if checksum != self.kernel.ABSENT and zlib.crc32(packed) != checksum % 2**32:
                raise UnusualError

    def quick(self) -> tuple[Numbers, Numbers]:
        """Bytes in which pages are plain or packed by snappy, and the numbers of all of them."""
        kernel = self.kernel
        if self._chunk.codec != "ZSTD":
            return self._bytes, self._table
        table, parts, at = self._table.copy(), list[Numbers](), 0
        for page in table:
            levels = page[kernel.START] + page[kernel.DEFINITIONS] + page[kernel.REPETITIONS]
            parts += (self._bytes[page[kernel.START] : levels], self.unpacked(page.tolist()))
            page[kernel.START], page[kernel.LENGTH] = at, page[kernel.SIZE]
            page[kernel.PACKED] = 0
            at += page[kernel.SIZE]
        return np.concatenate(parts), table

    def values(self, page: Sequence[int], levels: Any) -> tuple[Numbers, int]:
        """The bytes of a page of no lists, and where its values begin in them. ``levels``:
        `parquet_level_kernels`."""
        kernel, data, deep = self.kernel, self.unpacked(page), self._chunk.deep
        source, at, length = self._bytes, page[kernel.START], page[kernel.DEFINITIONS]
        separate = page[kernel.TYPE] == kernel.DATA_V2
        count = page[kernel.COUNT]
        if separate and (page[kernel.REPETITIONS] or page[kernel.ROWS] != count):
            raise UnusualError
        if separate and not deep and length:
            raise UnusualError
        if not separate and deep:
            source, at, length = data, 4, int.from_bytes(data[:4].tobytes(), "little")
        if deep and at + length > len(source):
            raise UnusualError
        if deep and not levels.all_are(source, at, at + length, count, deep):
            raise UnusualError
        return data, 0 if separate or not deep else at + length

    def unpacked(self, page: Sequence[int]) -> Numbers:
        """The bytes of a page, of one of the second version those behind its levels."""
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
        memory = np.empty(size + snappy.SLACK, np.uint8)
        if not snappy.unsnapped(data, 0, length, memory, size):
            raise UnusualError
        return memory[:size]


@cache
def _codec(name: str) -> pa.Codec:
    return pa.Codec(name.lower())
