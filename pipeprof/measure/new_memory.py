"""Measure what it takes to use new memory for the first time, and to give it back.

The kernel creates and clears each page then, which on a virtual machine takes several times as long
as to copy data into it. Workers need new shared memory for each batch. The training process gives
it back when it drops the batch. Without workers it mostly uses the same private memory again.
"""

from __future__ import annotations

import mmap
from contextlib import suppress
from time import thread_time
from typing import NamedTuple

import numpy as np

from pipeprof.measure.proc_counters import new_bytes

_SIZE = 4 << 20
_ROUNDS = 3


class NewMemory(NamedTuple):
    """CPU seconds for each byte; ``None`` is unknown."""

    shared_s: float | None = None
    private_s: float | None = None
    """For each byte that `new_bytes` counts: of large pages it counts few."""
    release_s: float | None = None
    """To give shared memory back."""


def new_memory() -> NewMemory:
    """Measure both kinds of memory, in about 12 ms. The fastest of a few rounds counts.

    The memory is anonymous, so that a full ``/dev/shm`` does not matter.

    Examples:
        >>> seconds = 20e6 * new_memory().shared_s  # for a batch of 20 MB
    """
    with suppress(OSError, ValueError):
        shared, private = (
            [_use_and_release(kind | mmap.MAP_ANONYMOUS) for _ in range(_ROUNDS)]
            for kind in (mmap.MAP_SHARED, mmap.MAP_PRIVATE)
        )
        return NewMemory(
            min(used_s for used_s, _, _ in shared) / _SIZE,
            min(used_s / (counted or _SIZE) for used_s, _, counted in private),
            min(released_s for _, released_s, _ in shared) / _SIZE,
        )
    return NewMemory()


def _use_and_release(flags: int) -> tuple[float, float, float]:
    """Return the CPU seconds to use `_SIZE` bytes first, and to give them back, and how many the
    kernel counted; 0 where it does not count."""
    memory = mmap.mmap(-1, _SIZE, flags)
    pages = np.frombuffer(memory, np.uint8)[:: mmap.PAGESIZE]
    before, begin_s = new_bytes(), thread_time()
    pages[:] = 1
    used_s = thread_time()
    counted = new_bytes() - before
    del pages
    memory.close()
    return used_s - begin_s, thread_time() - used_s, counted if counted > 0 else 0.0
