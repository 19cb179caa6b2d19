"""Read an object in order, block by block, and decompress it if it is compressed as a whole."""

from __future__ import annotations

from collections.abc import Callable

from pipeprof.formats.base import PREFETCH_DEPTH, ByteRange, Fetching, fetch
from pipeprof.formats.decompress import Codec, Inflater

_LEAST_BLOCK = 16
"""Bytes from which a compression is recognised."""
_MOST_INFLATED = 1032
"""The most bytes that one byte of deflate can become."""


class Stream:
    """The plain bytes of an object from its first to its last."""

    def __init__(self, size: int, block_bytes: int, recognise: Callable[[bytes], Codec | None]):
        self.size = size
        self.codec: Codec | None = None
        self._block = max(block_bytes, _LEAST_BLOCK)
        self._recognise = recognise
        self._offset = 0
        self._inflater: Inflater | None = None

    @property
    def most_bytes(self) -> int:
        """An upper bound of the number of plain bytes; known after the first `read`."""
        return self.size if self.codec is None else self.size * _MOST_INFLATED

    def read(self) -> Fetching:
        """Return the next bytes, at most a block; none after the last. Raises `CorruptData`."""
        while True:
            if self._inflater is not None:
                plain = self._inflater.pull(self._block)
                if plain or self._offset == self.size:
                    return plain if plain else self._inflater.finish()
            if self._offset == self.size:
                return b""
            wanted = self._block_at(self._offset)
            block = yield from fetch(*wanted, self._following())
            if self._offset == 0:
                self.codec = self._recognise(bytes(block[:_LEAST_BLOCK]))
                self._inflater = Inflater(self.codec) if self.codec else None
            self._offset += len(block)
            if self._inflater is None:
                return block
            self._inflater.push(block)

    def _block_at(self, offset: int) -> ByteRange:
        return offset, min(self._block, self.size - offset)

    def _following(self) -> tuple[ByteRange, ...]:
        """Return the blocks after the one that is read now."""
        first = sum(self._block_at(self._offset))
        offsets = range(first, self.size, self._block)[:PREFETCH_DEPTH]
        return tuple(self._block_at(offset) for offset in offsets)
