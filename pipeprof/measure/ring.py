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

_WORDS = 1 + len(FIELDS)
_SLOT_BYTES = 8 * _WORDS
"""Three cache lines: no two records share one."""
_NUMBER, _DOUBLE = struct.Struct("<q").pack_into, struct.Struct("<d").pack_into
_WHOLE = struct.Struct(f"<q{len(FIELDS)}d").pack_into
_NOT_SAMPLED = struct.Struct(f"<q{2 + len(PLAIN) + len(IN_PARTS)}d").pack_into
_NO_PARTS = (0.0,) * len(IN_PARTS)
_SENT_AT = 8
_CPU = FIELDS.index("cpu_s")
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
        self._memory = self._shared.view

    def write(self, worker: int, number: int, told: Sequence[float]) -> int | None:
        """``told`` as in `TOLD`. The record's place, for `mark_sent`; ``None`` when it is lost."""
        memory = self._memory
        if memory is None:
            return None
        at = self._slot(worker, number)
        # the number is cleared first and set last: a reader never takes a half-written record
        if len(told) == len(PLAIN):
            _NOT_SAMPLED(memory, at, 0, nan, *told, *_NO_PARTS, nan)
        elif len(told) == len(TOLD):
            _WHOLE(memory, at, 0, nan, *told)
        else:
            _NOT_SAMPLED(memory, at, 0, nan, *told, nan)
        _NUMBER(memory, at, number)
        return at

    def mark_sent(self, place: int, sent_s: float) -> None:
        """The batch is serialised and about to go into the pipe. Called before main can know of
        the batch, and so before it reads the record."""
        if self._memory is not None:
            _DOUBLE(self._memory, place + _SENT_AT, sent_s)

    def holds(self, worker: int, number: int) -> bool:
        """Whether that record is there to be read."""
        return bool(np.isfinite(self.read([worker], [number])[0, 1]))

    def read(self, workers: Sequence[int], numbers: Sequence[int]) -> Floats:
        """[records, `FIELDS`]; NaN where one is lost."""
        wanted = np.array(numbers, dtype=np.int64)
        if self._memory is None or not len(wanted):
            return np.full((len(wanted), len(FIELDS)), nan)
        counts = wanted & (1 << _COUNT_BITS) - 1
        slots = np.array(workers, dtype=np.int64) * self._slots + counts % self._slots
        table = np.frombuffer(self._memory).reshape(-1, _WORDS)
        found = table[slots]
        # the second look: it may have been overwritten while it was copied
        still = table[slots, 0].view(np.int64)
        told: Floats = found[:, 1:]
        told[np.isnan(told[:, _CPU]), _CPU:] = nan  # not sampled: what is there is older
        told[(np.ascontiguousarray(found[:, 0]).view(np.int64) != wanted) | (still != wanted)] = nan
        return told

    def _slot(self, worker: int, number: int) -> int:
        count = number & (1 << _COUNT_BITS) - 1
        return (worker * self._slots + count % self._slots) * _SLOT_BYTES

    def __getstate__(self) -> dict[str, Any]:
        return {"slots": self._slots, "shared": self._shared}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._slots, self._shared = state["slots"], state["shared"]
        self._memory = self._shared.view

    def close(self) -> None:
        self._memory = None
        self._shared.close()
