"""Share memory between a process and the workers that it starts, outside of any file system.

The memory is a memfd: it has no name, and vanishes with the last process that uses it. A worker
that does not inherit it (spawn, forkserver) opens it through /proc. Where that is refused, the
worker continues without.
"""

from __future__ import annotations

import mmap
import os
from contextlib import suppress
from typing import Any

from pipeprof.measure.finalizer import finalizer

_NAME = "pipeprof"


class SharedMemory:
    """``size`` bytes, initially 0. It works on Linux only, and raises OSError elsewhere."""

    def __init__(self, size: int) -> None:
        self.view: mmap.mmap | None = None
        """``None`` once it is closed, or where it could not be opened."""
        self._size = size
        if not hasattr(os, "memfd_create"):
            raise OSError("no memfd on this system")
        self._descriptor = os.memfd_create(_NAME)
        try:
            os.ftruncate(self._descriptor, size)
            self.view = mmap.mmap(self._descriptor, size)
        except (OSError, ValueError):
            self.close()
            raise

    def __getstate__(self) -> dict[str, Any]:
        return {"path": f"/proc/{os.getpid()}/fd/{self._descriptor}", "size": self._size}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._size, self._descriptor, self.view = state["size"], -1, None
        # an error raised here would end the worker that starts
        with suppress(OSError, ValueError):
            if not os.readlink(state["path"]).startswith(f"/memfd:{_NAME}"):
                return  # main has closed it, and another file has its number now
            self._descriptor = os.open(state["path"], os.O_RDWR | os.O_CLOEXEC)
            self.view = mmap.mmap(self._descriptor, self._size)

    def close(self) -> None:
        if self.view is not None:
            with suppress(BufferError):  # an array over it keeps it
                self.view.close()
            self.view = None
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    @finalizer
    def __del__(self) -> None:
        if hasattr(self, "_descriptor"):
            self.close()
