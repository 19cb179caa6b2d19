"""Local files: positional reads on descriptors that stay open."""

from __future__ import annotations

import errno
import glob
import os
import threading
from collections import OrderedDict
from collections.abc import Sequence
from time import perf_counter
from typing import Any

from pipeprof.errors import NothingFound, StorageError
from pipeprof.measure.finalizer import finalizer
from pipeprof.measure.stage_timer import record_read
from pipeprof.model import ReadOptions
from pipeprof.storage.base import Buffer, ObjectInfo, is_hidden
from pipeprof.storage.local_reads import LocalReader
from pipeprof.storage.urls import local_path

_OPEN_FILES = 64
_DIRECT = getattr(os, "O_DIRECT", 0)
_REFUSED = "direct reads were asked for; this file system refuses them, so the page cache is used"


class LocalStore:
    """Files of this machine, network mounts included.

    May be asked by several threads, one after another; a forked child starts its own.
    """

    client = "positional reads"
    one_at_a_time = True
    """Since one read is several requests at a time already, where that helps."""

    def __init__(self, options: ReadOptions | None = None) -> None:
        self._options = options or ReadOptions()
        self._direct = self._options.direct and _DIRECT != 0
        self.notes: tuple[str, ...] = (_REFUSED,) if self._options.direct > self._direct else ()
        """What could not be done as asked."""
        self._descriptors: OrderedDict[str, int] = OrderedDict()
        self._begin()

    def _begin(self) -> None:
        """In this process: what threads and locks there were are those of another."""
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._reader = LocalReader(self._options)

    def find(self, url: str) -> list[ObjectInfo]:
        path, found = local_path(url), []
        folder = os.path.isdir(path)
        try:
            if folder:
                found = _files_below(path)
            elif os.path.isfile(path):
                found = [path]
            elif glob.has_magic(path):
                found = list(filter(os.path.isfile, glob.glob(path, recursive=True)))
            items = [ObjectInfo(name, name, os.stat(name).st_size) for name in sorted(found)]
        except OSError as error:
            culprit = error.filename or path
            raise StorageError(f"{culprit} cannot be listed: {error.strerror}.") from None
        if items:
            return items
        if folder:
            raise NothingFound(f"{path} is a folder without data files; check the path.")
        raise NothingFound(f"{path} does not exist, and matches no file; check the path.")

    def read(self, item: ObjectInfo, ranges: Sequence[tuple[int, int]]) -> list[Buffer]:
        if self._pid != os.getpid():
            self._begin()
        start = perf_counter()
        try:
            with self._lock:
                buffers, requests = self._read(item.path, ranges)
        except OSError as error:
            raise StorageError(f"{item.path} cannot be read: {error.strerror}.") from None
        count = sum(length for _, length in ranges)
        record_read(start, perf_counter(), count, requests)
        return list(buffers)

    def _read(
        self, path: str, ranges: Sequence[tuple[int, int]]
    ) -> tuple[Sequence[memoryview], int]:
        try:
            return self._reader.read(self._open(path), path, ranges, self._direct)
        except OSError as error:
            if not self._direct or error.errno != errno.EINVAL:
                raise
        self._direct, self.notes = False, (_REFUSED,)  # said at opening, or only at the first read
        self.close()
        return self._reader.read(self._open(path), path, ranges, self._direct)

    def _open(self, path: str) -> int:
        if path in self._descriptors:
            self._descriptors.move_to_end(path)
            return self._descriptors[path]
        if len(self._descriptors) >= _OPEN_FILES:
            os.close(self._descriptors.popitem(last=False)[1])
        flags = os.O_RDONLY | os.O_CLOEXEC | (_DIRECT if self._direct else 0)
        self._descriptors[path] = os.open(path, flags)
        return self._descriptors[path]

    def close(self) -> None:
        while self._descriptors:
            os.close(self._descriptors.popitem()[1])

    __del__ = finalizer(close)

    def __getstate__(self) -> dict[str, Any]:
        return {"_options": self._options, "_direct": self._direct, "notes": self.notes}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._descriptors = OrderedDict()
        self._begin()


def _files_below(root: str) -> list[str]:
    def complain(error: OSError) -> None:
        raise error

    found = []
    for folder, folders, names in os.walk(root, onerror=complain, followlinks=True):
        folders[:] = [name for name in folders if not is_hidden(name)]
        found += [f"{folder.rstrip('/')}/{name}" for name in names if not is_hidden(name)]
    return found
