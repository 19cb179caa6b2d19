"""Memory to read into, used again once nobody holds any of it.

Fresh memory is dear: the kernel clears every page when it is first touched, which can take longer
than copying the file's bytes into it (``make bench-local``). Decoded columns and tensors may be
views of what was read, for as long as a batch lives; so it is not guessed when memory is free.
"""

from __future__ import annotations

import mmap
import sys
import threading
from contextlib import suppress

_SMALL = 2**17
"""Bytes; below, the interpreter's own memory is as good, and is used again as it is."""
_HUGE = 2**21
"""From here on the kernel may clear memory in large pages, which takes half as long."""
_LEAST_KEPT = 2
"""Whatever their size: one is decoded while the other is read into."""
_KEPT = 4
_KEPT_BYTES = 64 * 2**20
_PRIVATE = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
"""Not shared with a child that is forked, which reads into it too."""


class Buffers:
    """Of one process, for any of its threads."""

    def __init__(self) -> None:
        self._kept: list[mmap.mmap] = []
        """The last used comes last."""
        self._lock = threading.Lock()

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
            while self._too_many():
                self._kept.pop(0)  # lives on for as long as somebody holds it
        return view[:size]

    def _free(self, size: int) -> int | None:
        """Not one that is far larger: whoever keeps a part of it keeps all of it."""
        places = range(len(self._kept))
        fitting = (n for n in places if size <= len(self._kept[n]) <= 2 * size + _SMALL)
        return next((n for n in fitting if _holders(self._kept, n) == _ALONE), None)

    def _too_many(self) -> bool:
        count, size = len(self._kept), sum(map(len, self._kept))
        return count > _KEPT or (count > _LEAST_KEPT and size > _KEPT_BYTES)


def _fresh(size: int) -> mmap.mmap:
    """A little more than ``size``, so that it also fits the next row group; what is never touched
    is never there."""
    step = max(mmap.PAGESIZE, 1 << (size.bit_length() - 3))
    memory = mmap.mmap(-1, -(-size // step) * step, flags=_PRIVATE)
    if size >= _HUGE and hasattr(mmap, "MADV_HUGEPAGE"):
        with suppress(OSError):  # a kernel without
            memory.madvise(mmap.MADV_HUGEPAGE)
    return memory


def _holders(memories: list[mmap.mmap], place: int) -> int:
    """Every view of memory, and every view of a view, holds a reference to it."""
    return sys.getrefcount(memories[place])


_COUNTED = getattr(sys, "_is_gil_enabled", lambda: True)()
"""Without a GIL, what others hold is not to be seen at once."""
_ALONE = _holders([mmap.mmap(-1, 1)], 0) if _COUNTED else -1
