"""Measure what it takes to use new memory for the first time.

The kernel creates and clears each page then, which on a virtual machine takes several times as long
as to copy data into it. Workers need new shared memory for each batch. A training process without
workers mostly uses the same private memory again.
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
    """CPU seconds for each byte that `new_bytes` counts; ``None`` is unknown."""

    shared_s: float | None = None
    private_s: float | None = None


def new_memory() -> NewMemory:
    """Measure both kinds of memory, in about 12 ms. The fastest of a few rounds counts.

    The memory is anonymous, so that a full ``/dev/shm`` does not matter.

    Examples:
        >>> seconds = 20e6 * new_memory().shared_s  # for a batch of 20 MB
    """
    with suppress(OSError, ValueError):
        return NewMemory(*(
            min(_first_use_s(kind | mmap.MAP_ANONYMOUS) for _ in range(_ROUNDS))
            for kind in (mmap.MAP_SHARED, mmap.MAP_PRIVATE)
        ))  # fmt: skip
    return NewMemory()


def _first_use_s(flags: int) -> float:
    """Return the CPU seconds for each new byte. The kernel may provide large pages, and then counts
    few."""
    pages = np.frombuffer(mmap.mmap(-1, _SIZE, flags), np.uint8)[:: mmap.PAGESIZE]
    before, begin_s = new_bytes(), thread_time()
    pages[:] = 1
    took_s = thread_time() - begin_s
    return took_s / max(mmap.PAGESIZE, new_bytes() - before)
