"""Memory to read into, used again once nobody holds any of it.

Fresh memory is dear: the kernel clears every page when it is first touched, which can take longer
than copying the file's bytes into it (``make bench-local``). Decoded columns and tensors may be
views of what was read, for as long as a batch lives; so it is not guessed when memory is free.

All readers of a process share it: who opens a data set after another, or again for each epoch,
finds memory that was cleared. While nobody reads, the kernel may take it.
"""

from __future__ import annotations

import mmap
import os
import sys
import threading
import weakref
from contextlib import suppress

_SMALL = 2**17
"""Bytes; below, the interpreter's own memory is as good, and is used again as it is."""
_HUGE = 2**21
"""From here on the kernel may clear memory in large pages, which takes half as long."""
_LEAST_KEPT = 2
"""For each reader, whatever their size: one is decoded while the other is read into."""
_KEPT = 4
"""For each reader at most."""
_KEPT_BYTES = 64 * 2**20
"""For all of them, if that leaves them the least."""
_PRIVATE = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
"""Not shared with a child that is forked, which reads into it too."""


class Buffers:
    """Of one process, for any of its threads."""

    def __init__(self) -> None:
        self._readers = 0
        self._begin()

    def _begin(self) -> None:
        self._kept: list[mmap.mmap] = []
        """The last used comes last."""
        self._lock = threading.RLock()  # a reader may end while its thread takes memory for another

    def serve(self, reader: object) -> Buffers:
        """Itself, for as long as ``reader`` lives."""
        with self._lock:
            self._readers += 1
        weakref.finalize(reader, self._ended).atexit = False
        return self

    def _ended(self) -> None:
        with self._lock:
            self._readers -= 1
            if not self._readers:
                places = range(len(self._kept))
                free = [n for n in places if _holders(self._kept, n) == _ALONE]
                self._kept = [self._kept[n] for n in free if _may_be_taken(self._kept[n])]
                self._let_go()

    def take(self, size: int, aligned: bool = False) -> memoryview:
        """``size`` writable bytes of any content, the caller's for as long as anything refers to
        them. ``aligned``: they begin at a page."""
        if (size < _SMALL and not aligned) or not size:
            return memoryview(bytearray(size))
        with self._lock:
            place = self._free(size)
            memory = _fresh(size) if place is None else self._kept.pop(place)
            view = memoryview(memory)
            self._kept.append(memory)
            self._let_go()
        return view[:size]

    def _free(self, size: int) -> int | None:
        """Not one that is far larger: whoever keeps a part of it keeps all of it."""
        places = range(len(self._kept))
        fitting = (n for n in places if size <= len(self._kept[n]) <= 2 * size + _SMALL)
        return next((n for n in fitting if _holders(self._kept, n) == _ALONE), None)

    def _let_go(self) -> None:
        """Of what is too much; it lives on for as long as somebody holds it."""
        readers, size = max(1, self._readers), sum(map(len, self._kept))
        while len(self._kept) > (_KEPT if size <= _KEPT_BYTES else _LEAST_KEPT) * readers:
            size -= len(self._kept.pop(0))


def _fresh(size: int) -> mmap.mmap:
    """A little more than ``size``, so that it also fits the next row group; what is never touched
    is never there."""
    step = max(mmap.PAGESIZE, 1 << (size.bit_length() - 3))
    memory = mmap.mmap(-1, -(-size // step) * step, flags=_PRIVATE)
    if size >= _HUGE and hasattr(mmap, "MADV_HUGEPAGE"):
        with suppress(OSError):  # a kernel without
            memory.madvise(mmap.MADV_HUGEPAGE)
    return memory


def _may_be_taken(memory: mmap.mmap) -> bool:
    """Tell the kernel that nobody needs what is in it: pages that it does not take meanwhile can be
    written without a fault. Whether it listens."""
    with suppress(OSError, AttributeError):
        memory.madvise(mmap.MADV_FREE)
        return True
    return False


def _holders(memories: list[mmap.mmap], place: int) -> int:
    """Every view of memory, and every view of a view, holds a reference to it."""
    return sys.getrefcount(memories[place])


_COUNTED = getattr(sys, "_is_gil_enabled", lambda: True)()
"""Without a GIL, what others hold is not to be seen at once."""
_ALONE = _holders([mmap.mmap(-1, 1)], 0) if _COUNTED else -1

SHARED = Buffers()
"""By all readers of this process."""
if hasattr(os, "register_at_fork"):  # a child's writes would copy what its parent keeps
    os.register_at_fork(after_in_child=SHARED._begin)
