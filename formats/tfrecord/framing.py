"""The framing of TFRecord: length, masked CRC-32C of the length, payload, masked CRC of it.

    u64 length | u32 masked_crc(length) | length bytes | u32 masked_crc(bytes)     little-endian

There is no marker to find a record by, so framing can only be entered at its beginning.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf
from struct import Struct
from typing import Any

import numpy as np
from crc32c import crc32c

from pipeprof.errors import CorruptData
from pipeprof.formats.base import Buffer
from pipeprof.formats.gather import Places, unaligned
from pipeprof.formats.tfrecord.varint import PAD

_LENGTH = Struct("<Q")
_HEADER = Struct("<QI")
_CRC = Struct("<I")
HEADER_BYTES = _HEADER.size
_AROUND = _HEADER.size + _CRC.size
_MOST_BYTES = 2**31 - 1
"""The most bytes of a payload: what protobuf can hold."""
_LARGE = 2**15
"""Size in bytes of a large record. One that lies in two blocks is joined by itself, so that the
rest of the second block is not copied."""


def masked_crc(data: bytes | memoryview) -> int:
    """Return the CRC-32C, rotated and offset as TFRecord wants it. A CRC of data that contain CRCs
    would otherwise be weak."""
    masked: int = _masked(crc32c(data))
    return masked


def _masked(crc: Any) -> Any:
    """Mask one CRC, or an array of them (uint64)."""
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def frame(payload: bytes) -> bytes:
    """Return the framed record of a payload."""
    length = len(payload).to_bytes(8, "little")
    return b"".join(
        (length, _CRC.pack(masked_crc(length)), payload, _CRC.pack(masked_crc(payload)))
    )


def is_framed(head: bytes) -> bool:
    """Return whether ``head`` begins with a length and the CRC that belongs to it."""
    if len(head) < HEADER_BYTES:
        return False
    return masked_crc(head[:8]) == int(_HEADER.unpack_from(head)[1])


def _lengths_match(found: Records) -> int:
    """Return how many of the first records have the right CRC of their length."""
    lengths, which = np.unique(found.stops - found.starts, return_inverse=True)
    crcs = np.array([masked_crc(_LENGTH.pack(length)) for length in lengths], np.uint32)
    headers = found.starts - HEADER_BYTES + _LENGTH.size
    wrong = np.flatnonzero(crcs[which] != unaligned(found.data, "<u4", headers))
    return int(wrong[0]) if len(wrong) else len(found)


class Records:
    """Payloads that stay in the block in which they were read."""

    def __init__(self, data: Buffer, starts: Places, stops: Places) -> None:
        """Refer to payloads in ``data``, which needs at least the length of `PAD` behind the last
        one."""
        self.data, self.starts, self.stops = data, starts, stops

    @classmethod
    def of(cls, payloads: Sequence[bytes]) -> Records:
        """Copy these payloads into one block."""
        lengths = np.fromiter(map(len, payloads), np.int64, len(payloads))
        stops = np.cumsum(lengths)
        return cls(b"".join([*payloads, PAD]), stops - lengths, stops)

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, part: slice) -> Records:
        return Records(self.data, self.starts[part], self.stops[part])

    def __iter__(self) -> Iterator[bytes]:
        return map(bytes, self.views())

    def views(self) -> Iterator[memoryview]:
        """Yield the payloads without a copy."""
        places = map(slice, self.starts.tolist(), self.stops.tolist())
        return map(memoryview(self.data).__getitem__, places)


class Deframer:
    """Takes blocks and returns whole records. It keeps at most a block and the record it ends
    in."""

    def __init__(self) -> None:
        self.size: int | None = None
        """The number of bytes in all, or a bound, where known. A length that leads beyond it is
        wrong."""
        self.records = 0
        """Records that have ended so far."""
        self.faults: list[tuple[int, CorruptData]] = []
        """Records of the last block whose bytes are damaged while their length is certain: the
        index of the next payload, and the error."""
        self.broken: CorruptData | None = None
        """Why no further record can be found; ``None`` as long as records follow."""
        self._parts: list[bytes | bytearray | memoryview] = []
        self._kept_bytes = 0
        self._wanted = HEADER_BYTES
        self._offset = 0
        """The offset in the object of the bytes that are kept."""
        self._buffer = bytearray()
        """The bytes that are kept. The memory is reused: fresh memory costs as much as the copy."""

    def cut(self, block: Buffer) -> list[Buffer]:
        """Cut ``block`` into the parts that are best fed one after another."""
        rest = self._wanted - self._kept_bytes
        if self._kept_bytes and self._wanted > _LARGE and rest < len(block):
            view = memoryview(block)
            return [view[:rest], view[rest:]]
        return [block]

    def feed(self, block: Buffer) -> Records:
        """Return the payloads that ``block`` completes, valid until the next block is fed. `faults`
        are left out, and nothing follows where the object is `broken`."""
        self.faults = []
        self._parts.append(block)
        self._kept_bytes += len(block)
        if self._kept_bytes < self._wanted:
            return Records.of([])
        data = self._joined() if len(self._parts) > 1 else block
        found = self._find(data)
        at = int(found.stops[-1]) + _CRC.size if found else 0
        records = self._undamaged(found)
        if len(data) - at + _CRC.size < len(PAD):  # too few bytes behind the last of them
            records = Records(self._joined(), records.starts, records.stops)
        rest = bytes(records.data[at : self._kept_bytes])
        self._parts = [rest] if rest else []
        self._kept_bytes -= at
        self._offset += at
        self.records += len(found)
        return records

    def _joined(self) -> bytearray:
        size = self._kept_bytes + len(PAD)
        if not size <= len(self._buffer) <= 4 * size:
            self._buffer = bytearray(size + size // 8)
        view, at = memoryview(self._buffer), 0
        for part in self._parts:
            view[at : at + len(part)] = part
            at += len(part)
        return self._buffer

    def finish(self) -> None:
        """Raise `CorruptData` when the object is `broken`, or a record has begun and not ended."""
        if self.broken:
            raise self.broken
        if self._kept_bytes:
            raise CorruptData(
                f"record {self.records} at byte {self._offset} is truncated: "
                f"{self._kept_bytes} of its {max(self._wanted, _AROUND)} bytes are there."
            )

    def _find(self, data: Buffer) -> Records:
        """Return the whole records in ``data``; their payloads may be damaged."""
        found = self._walk(data)
        self._wanted = HEADER_BYTES
        trusted = _lengths_match(found)
        if trusted < len(found):
            found = found[:trusted]
            self._break(found, "the CRC of its length does not match")
            return found
        at = int(found.stops[-1]) + _CRC.size if found else 0
        if self._kept_bytes - at < HEADER_BYTES:
            return found
        length, crc = _HEADER.unpack_from(data, at)
        if crc != masked_crc(_LENGTH.pack(length)):
            self._break(found, "the CRC of its length does not match")
        # before anything is read or kept for it: a lying length must not cost memory
        elif length > _MOST_BYTES or at + _AROUND + length > self._limit():
            self._break(found, f"its {length} bytes lead beyond the end of the data")
        else:
            self._wanted = _AROUND + length
        return found

    def _walk(self, data: Buffer) -> Records:
        """Return the records in ``data``, whose lengths are trusted."""
        end, at = min(self._kept_bytes, self._limit()), 0
        unpack = _LENGTH.unpack_from
        stops: list[int] = []
        while at + HEADER_BYTES <= end:
            at += _AROUND + unpack(data, at)[0]
            if at > end:
                break
            stops.append(at)
        ends = np.array(stops, np.int64)
        starts = np.concatenate([[0], ends[:-1]])[: len(ends)] + HEADER_BYTES
        return Records(data, starts, ends - _CRC.size)

    def _undamaged(self, found: Records) -> Records:
        """Return the records whose CRC matches, and note the others as `faults`."""
        crcs = np.fromiter(map(crc32c, found.views()), np.uint64, len(found))
        right = _masked(crcs) == unaligned(found.data, "<u4", found.stops)
        if right.all():
            return found
        why = "the CRC of its bytes does not match"
        for before, record in enumerate(np.flatnonzero(~right).tolist()):
            error = self._damaged(int(found.starts[record]) - HEADER_BYTES, record, why)
            self.faults.append((record - before, error))
        return Records(found.data, found.starts[right], found.stops[right])

    def _limit(self) -> float:
        """Return the offset up to which the kept bytes may lead."""
        return inf if self.size is None else self.size - self._offset

    def _break(self, found: Records, why: str) -> None:
        at = int(found.stops[-1]) + _CRC.size if found else 0
        self.broken = self._damaged(at, len(found), why)

    def _damaged(self, at: int, before: int, why: str) -> CorruptData:
        return CorruptData(
            f"record {self.records + before} at byte {self._offset + at} is damaged: {why}."
        )
