"""Whole records found by compiled code; see `pipeprof.formats.framing`."""

from __future__ import annotations

from typing import Any

import numpy as np

from pipeprof.formats.compiled import kernel
from pipeprof.formats.vectors import get, load, pointer

_POLYNOMIAL = 0x82F63B78
_HEADER, _CRC = 12, 4
_MOST = 2**31 - 1
"""Bytes of a payload."""
_8, _15, _17, _255 = (np.uint32(number) for number in (8, 15, 17, 255))
_32 = np.uint64(32)
_ALL, _ADDED = np.uint32(0xFFFFFFFF), np.uint32(0xA282EAD8)


def _table() -> Any:
    """Of each byte its CRC-32C."""
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = (table >> np.uint32(1)) ^ np.where(table & 1, np.uint32(_POLYNOMIAL), np.uint32(0))
    return table


_TABLE = _table()


@kernel("i8(Array(uint8, 1, 'C', readonly=True), i8, i8, i8[::1], i8[::1])")
def find(octets: Any, at: int, end: int, starts: Any, stops: Any) -> int:
    """How many whole records lie between ``at`` and ``end`` that have the CRC of their length; and
    where their payloads are. As many as there is room for."""
    data, found = pointer(octets), 0
    while found < len(starts) and at + _HEADER <= end:
        crc = _ALL
        for byte in range(at, at + 8):
            crc = _TABLE[(crc ^ get(data, byte)) & _255] ^ (crc >> _8)
        crc ^= _ALL
        masked = np.uint32(((crc >> _15) | (crc << _17)) + _ADDED)
        length = np.int64(load(data, at))
        start = at + _HEADER
        if not 0 <= length <= min(end - start - _CRC, _MOST):
            break
        if np.uint64(masked) != load(data, at + 4) >> _32:
            break
        starts[found], stops[found] = start, start + length
        at = start + length + _CRC
        found += 1
    return found
