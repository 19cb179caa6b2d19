"""The framing of TFRecord: length, masked CRC-32C of the length, payload, masked CRC of it.

    u64 length | u32 masked_crc(length) | length bytes | u32 masked_crc(bytes)     little-endian

There is no marker to find a record by, so framing can only be entered at its beginning.
"""

from __future__ import annotations

from functools import lru_cache
from math import inf
from struct import Struct

import numpy as np
import numpy.typing as npt
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


def _masked(crcs: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
    """The same of many CRCs at once."""
    masked: npt.NDArray[np.uint32] = (crcs >> np.uint32(15)) | (crcs << np.uint32(17))
    masked += np.uint32(0xA282EAD8)
    return masked


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
        """Bytes in all, or a limit, where known: a length that leads beyond is a lie."""
        self.records = 0
        """Come to an end so far."""
        self.faults: list[tuple[int, CorruptData]] = []
        """Records of the last block whose bytes are damaged while their length is certain: before
        which payload, and why."""
        self.broken: CorruptData | None = None
        """Why no record can be found behind those that were given out."""
        self._parts: list[bytes | bytearray | memoryview] = []
        self._held = 0
        self._wanted = HEADER_BYTES
        self._offset = 0
        """Where the held bytes begin."""

    def feed(self, block: bytes | bytearray | memoryview) -> list[bytes]:
        """The payloads that ``block`` completes, without `faults`, up to where it is `broken`."""
        self.faults = []
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
        self.records += len(payloads) + len(self.faults)
        return payloads

    def finish(self) -> None:
        """Raises `CorruptData` when it is `broken`, or a record has begun and not ended."""
        if self.broken:
            raise self.broken
        if self._held:
            raise CorruptData(
                f"record {self.records} at byte {self._offset} is truncated: "
                f"{self._held} of its {max(self._wanted, _AROUND)} bytes are there."
            )

    def _take(self, data: bytes, payloads: list[bytes]) -> int:
        """Append each whole and undamaged payload in ``data``; where the first partial record
        begins, or one that cannot be."""
        starts, found = self._find(data)
        if not found:
            return 0
        crcs = np.fromiter(map(crc32c, found), np.uint32, len(found))
        ends = np.array([*starts[1:], starts[-1] + _AROUND + len(found[-1])]) - _CRC.size
        stored = np.ndarray((len(data) - 3,), "<u4", data, 0, (1,))[ends]
        wrong = np.flatnonzero(_masked(crcs) != stored).tolist()
        good = 0
        for record in wrong:
            payloads += found[good:record]
            error = self._damaged(starts[record], record, "the CRC of its bytes does not match")
            self.faults.append((len(payloads), error))
            good = record + 1
        payloads += found[good:]
        return int(ends[-1]) + _CRC.size

    def _find(self, data: bytes) -> tuple[list[int], list[bytes]]:
        """Where each whole record in ``data`` begins, and its payload, which may be damaged."""
        starts: list[int] = []
        payloads: list[bytes] = []
        limit = self._limit()
        end, at = len(data), 0
        unpack, crc_of = _HEADER.unpack_from, _crc_of_length
        while end - at >= HEADER_BYTES:
            length, crc = unpack(data, at)
            stop = at + _AROUND + length
            if crc != crc_of(length):
                self.broken = self._damaged(at, len(starts), "the CRC of its length does not match")
                return starts, payloads
            # before anything is read or kept for it: a lying length must not cost memory
            if length > _MOST or stop > limit:
                why = f"its {length} bytes lead beyond the end of the data"
                self.broken = self._damaged(at, len(starts), why)
                return starts, payloads
            if stop > end:
                self._wanted = _AROUND + length
                return starts, payloads
            starts.append(at)
            payloads.append(data[at + HEADER_BYTES : stop - 4])
            at = stop
        self._wanted = HEADER_BYTES
        return starts, payloads

    def _limit(self) -> float:
        """Up to where the held bytes may lead."""
        return inf if self.size is None else self.size - self._offset

    def _damaged(self, at: int, before: int, why: str) -> CorruptData:
        return CorruptData(
            f"record {self.records + before} at byte {self._offset + at} is damaged: {why}."
        )
