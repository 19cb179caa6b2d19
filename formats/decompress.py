"""Decompress gzip, zlib and zstd streams: blocks go in, and pieces of bounded size come out."""

from __future__ import annotations

import sys
import zlib
from typing import Literal, Protocol

from pipeprof.errors import CorruptData

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

Codec = Literal["gzip", "zlib", "zstd"]
_WINDOW: dict[str, int] = {"gzip": 31, "zlib": 15}
_MAGIC: dict[str, bytes] = {"gzip": b"\x1f\x8b", "zstd": b"\x28\xb5\x2f\xfd"}
_CHECKSUM = zstd.CompressionParameter.checksum_flag
_DAMAGED = (zlib.error, zstd.ZstdError)


class _Member(Protocol):
    """One member of a stream, as `zlib.decompressobj` makes it."""

    @property
    def eof(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    @property
    def unconsumed_tail(self) -> bytes: ...

    def decompress(self, data: bytes, limit: int, /) -> bytes: ...


class _Frame:
    """A frame of zstd, with the interface of `zlib.decompressobj`."""

    unconsumed_tail = b""  # the decompressor keeps it

    def __init__(self) -> None:
        self._frame = zstd.ZstdDecompressor()
        self.decompress = self._frame.decompress

    @property
    def eof(self) -> bool:
        return bool(self._frame.eof)

    @property
    def unused_data(self) -> bytes:
        return bytes(self._frame.unused_data)


def _member(codec: Codec) -> _Member:
    return _Frame() if codec == "zstd" else zlib.decompressobj(_WINDOW[codec])


def recognise(head: bytes) -> Codec | None:
    """Return the codec of a stream of text or of an archive; ``None`` where it is plain."""
    if head.startswith(_MAGIC["zstd"]):
        return "zstd"
    return "gzip" if is_gzip(head) else None


def plain_head(head: bytes) -> bytes:
    """Return the first plain bytes of a stream that may be compressed; never raises."""
    codec = recognise(head)
    return inflate_head(head, codec) if codec else head


def is_gzip(head: bytes) -> bool:
    return head.startswith(_MAGIC["gzip"])


def is_zlib(head: bytes) -> bool:
    """Return whether ``head`` begins with a zlib header. One in 1,000 random pairs of bytes
    does."""
    return len(head) >= 2 and head[0] == 0x78 and int.from_bytes(head[:2], "big") % 31 == 0


def inflate_head(head: bytes, codec: Codec) -> bytes:
    """Return the plain bytes that the first compressed ones hold; never raises."""
    try:
        return _member(codec).decompress(head, 1 << 16)
    except _DAMAGED:
        return b""


class Deflater:
    """A compressor whose output depends on its input alone: it stores no name and no time."""

    def __init__(self, compression: str) -> None:
        """Use the codec ``compression``; anything else keeps the bytes as they are."""
        window = _WINDOW.get(compression)
        self._stream: zlib._Compress | zstd.ZstdCompressor | None = None
        if compression == "zstd":
            self._stream = zstd.ZstdCompressor(options={_CHECKSUM: 1})
        elif window:
            self._stream = zlib.compressobj(wbits=window)

    def compress(self, data: bytes, finish: bool = False) -> bytes:
        """Return what of ``data`` is compressed so far; with ``finish``, all to the end of the
        stream."""
        if self._stream is None:
            return data
        return self._stream.compress(data) + (self._stream.flush() if finish else b"")


class Inflater:
    """Takes compressed blocks and returns plain bytes. A stream of gzip or zstd may have many
    members."""

    def __init__(self, codec: Codec) -> None:
        self._codec = codec
        self._member = _member(codec)
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
            except _DAMAGED as error:
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
        magic = _MAGIC.get(self._codec)
        if magic is None or not magic.startswith(rest[: len(magic)]):
            raise CorruptData(
                f"the {self._codec} stream ends before byte {self._consumed}, "
                "and other bytes follow it."
            )
        if len(rest) < len(magic):
            return False
        self._input = rest
        self._member = _member(self._codec)
        self._between = False
        return True
