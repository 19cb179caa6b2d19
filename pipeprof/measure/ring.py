"""How workers tell main about each batch: fixed records in memory that both see.

Each worker writes a ring of its own, so nothing locks and no worker ever waits. A record carries
the number of its batch; main reads the slot where that number must be, and takes a slot that
holds another number for what it is: a lost record.

The memory is a memfd: it has no name in any file system, and is gone with its last process,
however that ends. A worker that does not inherit it (spawn, forkserver) opens it through /proc;
where that is refused, its records are lost and nothing else happens.
"""

from __future__ import annotations

import mmap
import os
import struct
from collections.abc import Sequence
from contextlib import suppress
from math import nan
from typing import Any

ALWAYS = ("fetch_start_s", "fetch_end_s", "read_s", "decode_s", "transform_s", "collate_s", "bytes",
          "requests", "turns")  # fmt: skip
SAMPLED = ("cpu_s", "runqueue_s", "process_cpu_s", "system_s", "logical_bytes", "physical_bytes",
           "syscalls", "private_bytes", "descriptors", "threads", "tensors",
           "batch_bytes")  # fmt: skip
FIELDS = (*ALWAYS, *SAMPLED, "sent_s")
"""What a worker says of a batch, in the order of a record; their meaning is in `BatchLog`. All
are doubles, so that NaN can say unknown."""

_NUMBER, _DOUBLE = struct.Struct("<q"), struct.Struct("<d")
RECORD_BYTES = _NUMBER.size + 8 * len(FIELDS)
_SLOT_BYTES = 192
"""Three cache lines: no two records share one."""
_SENT_AT = RECORD_BYTES - 8

_ALWAYS, _SAMPLED = struct.Struct(f"<{len(ALWAYS)}d"), struct.Struct(f"<{len(SAMPLED)}d")
_NOT_SENT = _DOUBLE.pack(nan)

pack_always = _ALWAYS.pack
"""What a worker says of any batch, as in `ALWAYS`; a record is this and `pack_sample`."""
UNSAMPLED = _SAMPLED.pack(*[nan] * len(SAMPLED)) + _NOT_SENT
"""Of a batch that was not sampled, in the place of `pack_sample`."""


def pack_sample(sample: Sequence[float]) -> bytes:
    """What a worker says of a sampled batch, as in `SAMPLED`."""
    return _SAMPLED.pack(*sample) + _NOT_SENT


UNSEEN = pack_always(*[nan] * len(ALWAYS)) + UNSAMPLED
"""Of a batch that no worker told of."""


def record_number(generation: int, count: int) -> int:
    """The number of the ``count``-th batch (from 0) that a worker made in its ``generation``-th
    epoch (from 1). Never 0, which an unused slot holds."""
    return generation << 40 | count


class Ring:
    """Room for the last ``slots`` records of each worker. Linux only: raises OSError elsewhere."""

    def __init__(self, workers: int, slots: int) -> None:
        self._slots = slots
        self._size = workers * slots * _SLOT_BYTES
        if not hasattr(os, "memfd_create"):
            raise OSError("no memfd on this system")
        self._descriptor = os.memfd_create("pipeprof-ring")
        os.ftruncate(self._descriptor, self._size)
        self._memory: mmap.mmap | None = mmap.mmap(self._descriptor, self._size)

    def write(self, worker: int, number: int, told: bytes) -> None:
        """``told``: `pack_always` and `pack_sample`."""
        if self._memory is None:
            return
        at = self._slot(worker, number)
        # the number is cleared first and set last: a reader never takes a half-written record
        _NUMBER.pack_into(self._memory, at, 0)
        self._memory[at + 8 : at + RECORD_BYTES] = told
        _NUMBER.pack_into(self._memory, at, number)

    def mark_sent(self, worker: int, number: int, sent_s: float) -> None:
        """The batch is serialised and about to go into the pipe. Called before main can know of
        the batch, and so before it reads the record."""
        if self._memory is not None:
            _DOUBLE.pack_into(self._memory, self._slot(worker, number) + _SENT_AT, sent_s)

    def read(self, worker: int, number: int) -> bytes | None:
        """What was written, or ``None`` when it is lost."""
        if self._memory is None:
            return None
        at = self._slot(worker, number)
        record = self._memory[at : at + RECORD_BYTES]
        # the second look: it may have been overwritten while it was copied
        if _NUMBER.unpack_from(record)[0] == _NUMBER.unpack_from(self._memory, at)[0] == number:
            return record[8:]
        return None

    def _slot(self, worker: int, number: int) -> int:
        count = number & (1 << 40) - 1
        return (worker * self._slots + count % self._slots) * _SLOT_BYTES

    def __getstate__(self) -> dict[str, Any]:
        path = f"/proc/{os.getpid()}/fd/{self._descriptor}"
        return {"path": path, "slots": self._slots, "size": self._size}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._slots, self._size = state["slots"], state["size"]
        self._descriptor, self._memory = -1, None
        # this runs while a worker starts: to raise here would end it
        with suppress(OSError):
            self._descriptor = os.open(state["path"], os.O_RDWR | os.O_CLOEXEC)
            self._memory = mmap.mmap(self._descriptor, self._size)

    def close(self) -> None:
        if self._memory is not None:
            self._memory.close()
            self._memory = None
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __del__(self) -> None:
        if hasattr(self, "_descriptor"):
            self.close()
