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
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

_LAYOUT = struct.Struct("<q6dd2q")
_RECORD_BYTES = 128
"""Room to grow, and two cache lines: no two records share one."""


@dataclass(frozen=True)
class WorkerRecord:
    """What a worker knows of one batch it made."""

    fetch_start_s: float
    fetch_end_s: float
    """Collate included."""
    read_s: float
    decode_s: float
    transform_s: float
    collate_s: float
    cpu_s: float
    """CPU time of the thread that made the batch."""
    bytes: int
    requests: int


def record_number(generation: int, count: int) -> int:
    """The number of the ``count``-th batch (from 0) that a worker made in its ``generation``-th
    epoch (from 1). Never 0, which an unused slot holds."""
    return generation << 40 | count


class Ring:
    """Room for the last ``slots`` records of each worker. Linux only: raises OSError elsewhere."""

    def __init__(self, workers: int, slots: int) -> None:
        self._slots = slots
        self._size = workers * slots * _RECORD_BYTES
        if not hasattr(os, "memfd_create"):
            raise OSError("no memfd on this system")
        self._descriptor = os.memfd_create("pipeprof-ring")
        os.ftruncate(self._descriptor, self._size)
        self._memory: mmap.mmap | None = mmap.mmap(self._descriptor, self._size)

    def write(self, worker: int, number: int, record: WorkerRecord) -> None:
        if self._memory is None:
            return
        at = self._slot(worker, number)
        # the number is cleared first and set last: a reader never takes a half-written record
        self._memory[at : at + 8] = bytes(8)
        _LAYOUT.pack_into(
            self._memory,
            at,
            0,
            record.fetch_start_s,
            record.fetch_end_s,
            record.read_s,
            record.decode_s,
            record.transform_s,
            record.collate_s,
            record.cpu_s,
            record.bytes,
            record.requests,
        )
        self._memory[at : at + 8] = number.to_bytes(8, "little")

    def read(self, worker: int, number: int) -> WorkerRecord | None:
        """The record, or ``None`` when it is lost."""
        if self._memory is None:
            return None
        at = self._slot(worker, number)
        found, *fields = _LAYOUT.unpack_from(self._memory, at)
        still = int.from_bytes(self._memory[at : at + 8], "little")
        return WorkerRecord(*fields) if found == still == number else None

    def _slot(self, worker: int, number: int) -> int:
        count = number & (1 << 40) - 1
        return (worker * self._slots + count % self._slots) * _RECORD_BYTES

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
