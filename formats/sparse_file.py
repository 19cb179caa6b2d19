"""Present byte ranges in memory as the file that pyarrow wants to read."""

from __future__ import annotations

import io
from bisect import bisect_right
from collections.abc import Sequence

from pipeprof.errors import CorruptData
from pipeprof.formats.base import Buffer, ByteRange, check_length


class OutsideRanges(CorruptData):
    """A read of bytes that were not fetched, because nothing that is asked for should be there."""

    def __init__(self, offset: int, length: int) -> None:
        super().__init__(
            f"{length} bytes at byte {offset} are read that no column lies in: "
            "the footer contradicts the data."
        )
        self.range: ByteRange = offset, length


class SparseFile(io.IOBase):
    """Reads fetched ranges without a copy. Any other read is an error; it never returns zeros."""

    def __init__(self, size: int, ranges: Sequence[ByteRange], buffers: Sequence[Buffer]) -> None:
        for buffer, (offset, length) in zip(buffers, ranges, strict=True):
            check_length(buffer, offset, length)
        parts = sorted(zip(ranges, buffers, strict=True), key=lambda pair: pair[0])
        self._starts = [offset for (offset, _), _ in parts]
        self._views = [memoryview(buffer) for _, buffer in parts]
        self._size = size
        self._at = 0

    def read(self, length: int = -1) -> memoryview:
        """Return the bytes at the current position. Raises `OutsideRanges`."""
        length = self._size - self._at if length < 0 else min(length, self._size - self._at)
        index = bisect_right(self._starts, self._at) - 1
        begin = self._at - self._starts[index] if index >= 0 else 0
        if index < 0 or begin + length > len(self._views[index]):
            raise OutsideRanges(self._at, length)
        self._at += length
        return self._views[index][begin : begin + length]

    def seek(self, offset: int, whence: int = 0) -> int:
        self._at = offset + (0, self._at, self._size)[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True


class RangeRecorder(SparseFile):
    """Notes which ranges are read that were not fetched, and gives zeros in their place. What comes
    of these is of no use."""

    def __init__(self, size: int, ranges: Sequence[ByteRange], buffers: Sequence[Buffer]) -> None:
        super().__init__(size, ranges, buffers)
        self.missing: list[ByteRange] = []

    def read(self, length: int = -1) -> memoryview:
        try:
            return super().read(length)
        except OutsideRanges as error:
            self.missing.append(error.range)
            self._at += error.range[1]
            return memoryview(bytes(error.range[1]))


def coalesced(ranges: Sequence[ByteRange], gap: int) -> list[ByteRange]:
    """Merge ranges that are at most ``gap`` bytes apart, so that fewer requests fetch the same
    bytes."""
    merged: list[ByteRange] = []
    for start, length in sorted(ranges):
        if merged and start - sum(merged[-1]) <= gap:
            end = max(sum(merged[-1]), start + length)
            merged[-1] = (merged[-1][0], end - merged[-1][0])
        else:
            merged.append((start, length))
    return merged
