"""The framing of TFRecord: length, masked CRC-32C of the length, payload, masked CRC of it.

    u64 length | u32 masked_crc(length) | length bytes | u32 masked_crc(bytes)     little-endian

There is no marker to find a record by, so framing can only be entered at its beginning.
"""

from __future__ import annotations

from functools import lru_cache
from struct import Struct

from crc32c import crc32c

from pipeprof.errors import CorruptData

_HEADER = Struct("<QI")
_CRC = Struct("<I")
HEADER_BYTES = _HEADER.size
_AROUND = _HEADER.size + _CRC.size
_MOST = 2**31 - 1
"""Bytes of a payload: what protobuf can hold."""


def masked_crc(data: bytes | memoryview) -> int:
    """CRC-32C, rotated and offset so that a CRC of data with CRCs in it stays a good one."""
    crc = crc32c(data)
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


@lru_cache(maxsize=4096)
def _crc_of_length(length: int) -> int:
    """The lengths of one file are often the same few."""
    return masked_crc(length.to_bytes(8, "little"))


def frame(payload: bytes) -> bytes:
    """One record."""
    length = len(payload).to_bytes(8, "little")
    return b"".join(
        (length, _CRC.pack(masked_crc(length)), payload, _CRC.pack(masked_crc(payload)))
    )


def is_framed(head: bytes) -> bool:
    """Whether ``head`` begins with a length and the CRC that belongs to it."""
    if len(head) < HEADER_BYTES:
        return False
    return masked_crc(head[:8]) == int(_HEADER.unpack_from(head)[1])


class Deframer:
    """Blocks in, whole records out. Holds at most a block and the record it ends in."""

    def __init__(self) -> None:
        self.size: int | None = None
        """Bytes in all, where known: a length that leads beyond is a lie."""
        self.records = 0
        """Given out so far."""
        self._parts: list[bytes] = []
        self._held = 0
        self._wanted = HEADER_BYTES
        self._offset = 0
        """Where the held bytes begin."""

    def feed(self, block: bytes) -> list[bytes]:
        """The payloads that ``block`` completes. Raises `CorruptData`."""
        self._parts.append(block)
        self._held += len(block)
        if self._held < self._wanted:
            return []
        data = b"".join(self._parts)
        payloads: list[bytes] = []
        at = self._take(data, payloads)
        self._parts = [data[at:]]
        self._held -= at
        self._offset += at
        self.records += len(payloads)
        return payloads

    def finish(self) -> None:
        """Raises `CorruptData` when a record has begun and not ended."""
        if self._held:
            raise CorruptData(
                f"record {self.records} at byte {self._offset} is truncated: "
                f"{self._held} of its {max(self._wanted, _AROUND)} bytes are there."
            )

    def _take(self, data: bytes, payloads: list[bytes]) -> int:
        """Append each whole payload in ``data``; where the first partial record begins."""
        end, at = len(data), 0
        while True:
            if end - at < HEADER_BYTES:
                self._wanted = HEADER_BYTES
                return at
            length, crc = _HEADER.unpack_from(data, at)
            if crc != _crc_of_length(length):
                raise self._damaged(at, len(payloads), "the CRC of its length does not match")
            # before anything is read or kept for it: a lying length must not cost memory
            if length > _MOST or self._leads_beyond(at + _AROUND + length):
                raise self._damaged(
                    at, len(payloads), f"its {length} bytes lead beyond the end of the data"
                )
            if end - at < _AROUND + length:
                self._wanted = _AROUND + length
                return at
            start = at + HEADER_BYTES
            stop = start + length
            payload = data[start:stop]
            if _CRC.unpack_from(data, stop)[0] != masked_crc(payload):
                raise self._damaged(at, len(payloads), "the CRC of its bytes does not match")
            payloads.append(payload)
            at = stop + _CRC.size

    def _leads_beyond(self, end: int) -> bool:
        return self.size is not None and self._offset + end > self.size

    def _damaged(self, at: int, before: int, why: str) -> CorruptData:
        return CorruptData(
            f"record {self.records + before} at byte {self._offset + at} is damaged: {why}."
        )
