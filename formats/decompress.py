"""Decompress gzip and zlib streams: blocks go in, and pieces of bounded size come out."""

from __future__ import annotations

import zlib
from typing import Literal

from pipeprof.errors import CorruptData

Codec = Literal["gzip", "zlib"]
_WINDOW: dict[str, int] = {"gzip": 31, "zlib": 15}
_GZIP_MAGIC = b"\x1f\x8b"


def is_gzip(head: bytes) -> bool:
    return head.startswith(_GZIP_MAGIC)


def is_zlib(head: bytes) -> bool:
    """Return whether ``head`` begins with a zlib header. One in 1,000 random pairs of bytes
    does."""
    return len(head) >= 2 and head[0] == 0x78 and int.from_bytes(head[:2], "big") % 31 == 0


def inflate_head(head: bytes, codec: Codec) -> bytes:
    """Return the plain bytes that the first compressed ones hold; never raises."""
    try:
        return zlib.decompressobj(_WINDOW[codec]).decompress(head, 1 << 16)
    except zlib.error:
        return b""


class Deflater:
    """A compressor whose output depends on its input alone: it stores no name and no time."""

    def __init__(self, compression: str) -> None:
        """Use the codec ``compression``; anything else keeps the bytes as they are."""
        window = _WINDOW.get(compression)
        self._stream = zlib.compressobj(wbits=window) if window else None

    def compress(self, data: bytes, finish: bool = False) -> bytes:
        """Return what of ``data`` is compressed so far; with ``finish``, all to the end of the
        stream."""
        if self._stream is None:
            return data
        return self._stream.compress(data) + (self._stream.flush() if finish else b"")


class Inflater:
    """Takes compressed blocks and returns plain bytes. A gzip stream may have many members."""

    def __init__(self, codec: Codec) -> None:
        self._codec = codec
        self._member = zlib.decompressobj(_WINDOW[codec])
        self._input = b""
        self._consumed = 0
        """Compressed bytes pushed so far."""
        self._between = False
        """Whether one member has ended and the next has not begun."""

    def push(self, block: bytes | bytearray | memoryview) -> None:
        self._input += block
        self._consumed += len(block)

    def pull(self, limit: int) -> bytes:
        """Return up to ``limit`` plain bytes; ``b""`` asks for another block. Raises
        `CorruptData`."""
        while True:
            if self._between and not self._next_member():
                return b""
            try:
                plain = self._member.decompress(self._input, limit)
            except zlib.error as error:
                raise CorruptData(
                    f"the {self._codec} stream is damaged before byte {self._consumed} ({error})."
                ) from None
            self._between = self._member.eof
            self._input = (
                self._member.unused_data if self._between else self._member.unconsumed_tail
            )
            if plain or not self._between:
                return plain

    def finish(self) -> bytes:
        """Return no bytes if the stream ended where it should. Raises `CorruptData`."""
        if not self._between or self._input:
            raise CorruptData(
                f"the {self._codec} stream is truncated: it continues beyond its last byte, "
                f"{self._consumed}."
            )
        return b""

    def _next_member(self) -> bool:
        """Begin the next member if there is one. Zeros after the last member are padding."""
        rest = self._input.lstrip(b"\0") if self._codec == "gzip" else self._input
        if not rest:
            self._input = b""
            return False
        if self._codec == "zlib" or not _GZIP_MAGIC.startswith(rest[:2]):
            raise CorruptData(
                f"the {self._codec} stream ends before byte {self._consumed}, "
                "and other bytes follow it."
            )
        if len(rest) < 2:
            return False
        self._input = rest
        self._member = zlib.decompressobj(_WINDOW[self._codec])
        self._between = False
        return True
