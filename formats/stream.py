"""An object read in order, block by block, inflated on the way when it is compressed whole."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence

from pipeprof.formats.base import AHEAD, Buffer, Need, Range, check_length
from pipeprof.formats.inflate import Codec, Inflater

_LEAST = 16
"""Bytes of a block: what recognising a compression takes."""
_MOST_DEFLATED = 1032
"""Bytes that deflate can make of one."""


class Stream:
    """The plain bytes of an object from its first to its last."""

    def __init__(self, size: int, block_bytes: int, recognise: Callable[[bytes], Codec | None]):
        self.size = size
        self.codec: Codec | None = None
        self._block = max(block_bytes, _LEAST)
        self._recognise = recognise
        self._offset = 0
        self._inflater: Inflater | None = None

    @property
    def most_bytes(self) -> int:
        """Plain bytes in all, or their limit. Known after the first `read`."""
        return self.size if self.codec is None else self.size * _MOST_DEFLATED

    def read(self) -> Generator[Need, Sequence[Buffer] | None, Buffer]:
        """The next bytes, at most a block; none after the last. Raises `CorruptData`."""
        while True:
            if self._inflater is not None:
                plain = self._inflater.pull(self._block)
                if plain or self._offset == self.size:
                    return plain if plain else self._inflater.finish()
            if self._offset == self.size:
                return b""
            wanted = self._block_at(self._offset)
            buffers = yield Need((wanted,), self._following())
            assert buffers is not None  # a Need is always answered
            [block] = buffers
            check_length(block, *wanted)
            if self._offset == 0:
                self.codec = self._recognise(bytes(block[:_LEAST]))
                self._inflater = Inflater(self.codec) if self.codec else None
            self._offset += len(block)
            if self._inflater is None:
                return block
            self._inflater.push(block)

    def _block_at(self, offset: int) -> Range:
        return offset, min(self._block, self.size - offset)

    def _following(self) -> tuple[Range, ...]:
        """The blocks after the one that is read now."""
        first = sum(self._block_at(self._offset))
        offsets = range(first, self.size, self._block)[:AHEAD]
        return tuple(self._block_at(offset) for offset in offsets)
