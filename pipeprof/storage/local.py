"""Read local files by positional reads on descriptors that stay open."""

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

_MAX_OPEN_FILES = 64
_O_DIRECT = getattr(os, "O_DIRECT", 0)
_NO_DIRECT_READS = (
    "direct reads were asked for; this file system refuses them, so the page cache is used"
)


class LocalStore:
    """Reads files of this machine, network mounts included. Threads that share it read one after
    another. A forked child starts a reader of its own."""

    client = "positional reads"
    one_at_a_time = True
    """One read already issues several requests at a time, where that helps."""

    def __init__(self, options: ReadOptions | None = None) -> None:
        self._options = options or ReadOptions()
        self._direct = self._options.direct and _O_DIRECT != 0
        refused = self._options.direct and not self._direct
        self.notes: tuple[str, ...] = (_NO_DIRECT_READS,) if refused else ()
        self._descriptors: OrderedDict[str, int] = OrderedDict()
        self._start()

    def _start(self) -> None:
        """Create the lock and the reader's threads for this process."""
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._reader = LocalReader(self._options)

    def find(self, url: str) -> list[ObjectInfo]:
        path, found = local_path(url), []
        is_folder = os.path.isdir(path)
        try:
            if is_folder:
                found = _files_below(path)
            elif os.path.isfile(path):
                found = [path]
            elif glob.has_magic(path):
                found = list(filter(os.path.isfile, glob.glob(path, recursive=True)))
            items = [ObjectInfo(name, name, os.stat(name).st_size) for name in sorted(found)]
        except OSError as error:
            failed = error.filename or path
            raise StorageError(f"{failed} cannot be listed: {error.strerror}.") from None
        if items:
            return items
        if is_folder:
            raise NothingFound(f"{path} is a folder without data files; check the path.")
        raise NothingFound(f"{path} does not exist, and matches no file; check the path.")

    def read(self, item: ObjectInfo, ranges: Sequence[tuple[int, int]]) -> list[Buffer]:
        if self._pid != os.getpid():
            self._start()
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
        # some file systems refuse at open(), others at the first read
        self._direct, self.notes = False, (_NO_DIRECT_READS,)
        self.close()
        return self._reader.read(self._open(path), path, ranges, self._direct)

    def _open(self, path: str) -> int:
        if path in self._descriptors:
            self._descriptors.move_to_end(path)
            return self._descriptors[path]
        if len(self._descriptors) >= _MAX_OPEN_FILES:
            os.close(self._descriptors.popitem(last=False)[1])
        flags = os.O_RDONLY | os.O_CLOEXEC | (_O_DIRECT if self._direct else 0)
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
        self._start()


def _files_below(root: str) -> list[str]:
    def raise_error(error: OSError) -> None:
        raise error

    found = []
    for folder, folders, names in os.walk(root, onerror=raise_error, followlinks=True):
        folders[:] = [name for name in folders if not is_hidden(name)]
        found += [f"{folder.rstrip('/')}/{name}" for name in names if not is_hidden(name)]
    return found
