"""An object read in order, block by block, inflated on the way when it is compressed whole."""

from __future__ import annotations

from collections.abc import Callable

from pipeprof.formats.base import Reading, fetch
from pipeprof.formats.inflate import Codec, Inflater

_LEAST = 16
"""Bytes of a block: what recognising a compression takes."""


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
    def plain_size(self) -> int | None:
        """Bytes in all; ``None`` when compression hides it. Known after the first `read`."""
        return self.size if self.codec is None else None

    def read(self) -> Reading:
        """The next bytes, at most a block; ``b""`` after the last. Raises `CorruptData`."""
        while True:
            if self._inflater is not None:
                plain = self._inflater.pull(self._block)
                if plain or self._offset == self.size:
                    return plain if plain else self._inflater.finish()
            if self._offset == self.size:
                return b""
            block = yield from fetch(self._offset, min(self._block, self.size - self._offset))
            if self._offset == 0:
                self.codec = self._recognise(block)
                self._inflater = Inflater(self.codec) if self.codec else None
            self._offset += len(block)
            if self._inflater is None:
                return block
            self._inflater.push(block)
