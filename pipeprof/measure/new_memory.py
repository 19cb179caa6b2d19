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
    """CPU seconds for each byte that `new_bytes` counts; ``None`` is unknown."""

    shared_s: float | None = None
    private_s: float | None = None
    release_s: float | None = None
    """To give shared memory back."""


def new_memory() -> NewMemory:
    """Measure both kinds of memory, in about 12 ms. The fastest of a few rounds counts.

    The memory is anonymous, so that a full ``/dev/shm`` does not matter.

    Examples:
        >>> seconds = 20e6 * new_memory().shared_s  # for a batch of 20 MB
    """
    with suppress(OSError, ValueError):
        (shared_s, release_s), (private_s, _) = map(_fastest, (mmap.MAP_SHARED, mmap.MAP_PRIVATE))
        return NewMemory(shared_s, private_s, release_s)
    return NewMemory()


def _fastest(kind: int) -> tuple[float, float]:
    rounds = [_use_and_release(kind | mmap.MAP_ANONYMOUS) for _ in range(_ROUNDS)]
    used_s, released_s = (min(each) for each in zip(*rounds, strict=True))
    return used_s, released_s


def _use_and_release(flags: int) -> tuple[float, float]:
    """Return the CPU seconds for each byte to use it first, and to give it back. The kernel may
    provide large pages, and then counts few."""
    memory = mmap.mmap(-1, _SIZE, flags)
    pages = np.frombuffer(memory, np.uint8)[:: mmap.PAGESIZE]
    before, begin_s = new_bytes(), thread_time()
    pages[:] = 1
    used_s = thread_time()
    size = max(mmap.PAGESIZE, new_bytes() - before)
    del pages
    memory.close()
    return (used_s - begin_s) / size, (thread_time() - used_s) / size
