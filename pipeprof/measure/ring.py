"""How workers tell main about each batch: fixed records in memory that both see.

Each worker writes a ring of its own, so nothing locks and no worker ever waits. A record carries
the number of its batch; main reads the slot where that number must be, and takes a slot that
holds another number for what it is: a lost record.

Where a worker cannot have the memory, its records are lost and nothing else happens.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from math import nan
from mmap import mmap
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeprof.measure.shared import SharedMemory

PLAIN = ("fetch_start_s", "fetch_end_s", "collate_s", "samples")
IN_PARTS = ("read_s", "decode_s", "transform_s", "bytes", "requests", "turns")
"""All 0 for a batch whose data set names no stages."""
SAMPLED = ("cpu_s", "runqueue_s", "process_cpu_s", "system_s", "logical_bytes", "physical_bytes",
           "syscalls", "private_bytes", "descriptors", "threads", "tensors",
           "batch_bytes")  # fmt: skip
TOLD = (*PLAIN, *IN_PARTS, *SAMPLED)
"""What is told of a batch by who made it: all of it, or up to and with `IN_PARTS`, or `PLAIN`."""
FIELDS = ("sent_s", *TOLD)
"""Their meaning is in `BatchLog`. All are doubles, so that NaN can say unknown."""

_HEAD = struct.Struct(f"@q{1 + len(PLAIN)}dqq").pack_into
"""The record's number, when it was sent, what is plain, how much is told, the number once more."""
_REST = (*IN_PARTS, *SAMPLED)
_LINE_WORDS = 8
"""Of a cache line, which the head fills: of a plain batch's record, the others are not touched."""
_WORDS = 4 * _LINE_WORDS
_SLOT_BYTES = 8 * _WORDS
_PARTS = struct.Struct(f"@{len(IN_PARTS)}d").pack_into
_WHOLE = struct.Struct(f"@{len(_REST)}d").pack_into
_NUMBER = struct.Struct("@q").pack_into
note_moment = struct.Struct("@d").pack_into
"""Takes a `RingWriter.memory`, a `RingWriter.place` and the moment."""
_PLAIN = len(PLAIN)
_SENT_AT, _REST_AT = 8, 8 * _LINE_WORDS
_TOLD_WORD, _AGAIN_WORD = 6, 7
_COUNT_BITS = 40

Floats = npt.NDArray[np.float64]


def record_number(generation: int, count: int) -> int:
    """The number of the ``count``-th batch (from 0) that a worker made in its ``generation``-th
    epoch (from 1). Never 0, which an unused slot holds."""
    return generation << _COUNT_BITS | count


class Ring:
    """Room for the last ``slots`` records of each worker. Linux only: raises OSError elsewhere."""

    def __init__(self, workers: int, slots: int) -> None:
        self._slots = slots
        self._shared = SharedMemory(workers * slots * _SLOT_BYTES)

    def writer(self, worker: int) -> RingWriter:
        first = worker * self._slots * _SLOT_BYTES
        return RingWriter(self._shared.view, first, first + self._slots * _SLOT_BYTES)

    def holds(self, worker: int, number: int) -> bool:
        """Whether that record is there to be read."""
        return bool(np.isfinite(self.read([worker], [number])[0, 1]))

    def read(self, workers: Sequence[int], numbers: Sequence[int]) -> Floats:
        """[records, `FIELDS`]; NaN where one is lost."""
        wanted = np.array(numbers, dtype=np.int64)
        told = np.full((len(wanted), len(FIELDS)), nan)
        if self._shared.view is None or not len(wanted):
            return told
        counts = wanted & (1 << _COUNT_BITS) - 1
        slots = np.array(workers, dtype=np.int64) * self._slots + counts % self._slots
        table = np.frombuffer(self._shared.view).reshape(-1, _WORDS)
        found = table[slots]
        # the second look: it may have been overwritten while it was copied
        still = table[slots, 0].view(np.int64)
        whole = found.view(np.int64)
        length, plain = whole[:, _TOLD_WORD], 1 + _PLAIN
        told[:, :plain] = found[:, 1 : 1 + plain]
        told[:, plain:] = found[:, _LINE_WORDS : _LINE_WORDS + len(_REST)]
        # what is there of what was not told is older
        told[length == _PLAIN, plain : plain + len(IN_PARTS)] = 0.0
        told[length != len(TOLD), plain + len(IN_PARTS) :] = nan
        lost = (whole[:, 0] != wanted) | (whole[:, _AGAIN_WORD] != wanted) | (still != wanted)
        told[lost] = nan
        return told

    def __getstate__(self) -> dict[str, Any]:
        return {"slots": self._slots, "shared": self._shared}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._slots, self._shared = state["slots"], state["shared"]

    def close(self) -> None:
        self._shared.close()


class RingWriter:
    """One worker's. Written for few steps: what the batches themselves take has driven our code and
    data out of the caches, and each line of either that has to come back costs 0.1 µs."""

    __slots__ = ("_at", "_end", "_first", "_generation", "_number", "memory", "place")

    def __init__(self, memory: mmap | None, first: int, end: int) -> None:
        # where there is none, nothing can be written
        self.memory: mmap | bytearray = bytearray() if memory is None else memory
        self._first, self._end = first, end
        self._at, self._generation, self._number = first, 0, 0
        self.place: int | None = None
        """In `memory`, of the moment at which the batch last told of is sent; ``None`` when its
        record is lost. To be noted before main can know of the batch, and so reads the record."""

    def begin_epoch(self) -> None:
        self._generation += 1
        self._number, self._at = record_number(self._generation, 0), self._first

    def tell(self, told: Sequence[float]) -> None:
        """Of the next batch, as in `TOLD`. Raises nothing: the record is lost, the batch is not."""
        at, number = self._at, self._number
        self._at, self._number = at + _SLOT_BYTES, number + 1
        if self._at == self._end:
            self._at = self._first
        self.place = None
        try:
            length = len(told)
            if length != _PLAIN:
                told = self._tell_more(at, told)
            start_s, end_s, collate_s, samples = told
            # from first to last: who copies it meanwhile finds two numbers
            _HEAD(self.memory, at, number, nan, start_s, end_s, collate_s, samples, length, number)
            self.place = at + _SENT_AT
        except Exception:
            pass

    def _tell_more(self, at: int, told: Sequence[float]) -> Sequence[float]:
        _NUMBER(self.memory, at, 0)
        pack = _WHOLE if len(told) == len(TOLD) else _PARTS
        pack(self.memory, at + _REST_AT, *told[_PLAIN:])
        return told[:_PLAIN]
