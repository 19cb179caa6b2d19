"""Read bytes of the probed objects from many threads, without the page cache where possible."""

from __future__ import annotations

import mmap
import os
import threading
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from pipeprof.errors import StorageError
from pipeprof.probe.gpudirect import gpudirect
from pipeprof.probe.result import GpuDirect
from pipeprof.storage import ObjectInfo, Store, open_store
from pipeprof.storage.local_reads import ALIGNMENT
from pipeprof.storage.urls import is_local, is_s3, redact

_MOST_FILES = 256
"""At most so many files are open. Of a larger folder so many are read, spread over all."""


class Target(Protocol):
    """The objects to read. It is picklable, and a process that unpickles it has its own client."""

    objects: Sequence[ObjectInfo]
    cache: str
    """What is known about caches in between, in words."""

    shared: bool
    """Whether other processes certainly find the same objects."""
    gpu_direct: GpuDirect | None
    """``None`` for objects that are not files of this machine."""

    @property
    def client(self) -> str:
        """How the objects are read, in words."""
        ...

    @property
    def notes(self) -> Sequence[str]:
        """Further sentences for a reader of the result, known after reading."""
        ...

    def read(self, item: ObjectInfo, offset: int, length: int) -> int:
        """Read from any thread, and return the number of bytes read. Raises `StorageError`."""
        ...

    def close(self) -> None: ...


def open_target(url: str, options: Mapping[str, Any] | None = None) -> Target:
    """Open the objects that ``url`` names. Raises `UsageError`, `StorageError`, `NothingFound`."""
    store = open_store(url, options)
    objects = [item for item in store.find(url) if item.size]
    if not objects:
        raise StorageError(f"{redact(url)} holds only empty files: there is nothing to read.")
    if is_local(url):
        return Files(objects[:: -(-len(objects) // _MOST_FILES)])
    # now, before anything is timed and other processes start: the first answer of S3 may show that
    # another client is needed
    store.read(objects[0], [(0, 1)])
    return Remote(store, objects)


class Files:
    """Local files, read with O_DIRECT where the file system allows it.

    It does without `storage.local_reads`: its care for memory and caches takes longer than a read
    here, and would be measured with small blocks.
    """

    notes = ()
    shared = True

    def __init__(self, objects: Sequence[ObjectInfo]) -> None:
        self.objects = objects
        self._thread = threading.local()
        self._descriptors: dict[str, int] = {}
        self._lock = threading.Lock()
        self._direct = getattr(os, "O_DIRECT", 0)
        try:
            self.read(objects[0], 0, ALIGNMENT)
        except StorageError:  # direct reads are refused by open, or only by read
            self.close()
            self._direct = 0
            self.read(objects[0], 0, ALIGNMENT)
        if self._direct:
            self.client, self.cache = "direct reads", "past this machine's page cache"
        else:
            self.client = "reads through the page cache"
            self.cache = "unknown: this file system allows no direct reads"
        self.gpu_direct: GpuDirect | None = gpudirect(objects[0].path, direct=bool(self._direct))

    def read(self, item: ObjectInfo, offset: int, length: int) -> int:
        descriptor = self._descriptors.get(item.path) or self._open(item)
        try:
            count = os.preadv(descriptor, [self._buffer(length)], offset)
        except OSError as error:
            raise StorageError(f"{item.path} cannot be read: {error.strerror}.") from None
        if not count:
            raise StorageError(f"{item.path} has become shorter since it was listed.")
        return count

    def close(self) -> None:
        while self._descriptors:
            os.close(self._descriptors.popitem()[1])

    def __reduce__(self) -> tuple[type[Files], tuple[Sequence[ObjectInfo]]]:
        return Files, (self.objects,)

    def _open(self, item: ObjectInfo) -> int:
        with self._lock:
            if item.path not in self._descriptors:
                try:
                    opened = os.open(item.path, os.O_RDONLY | os.O_CLOEXEC | self._direct)
                except OSError as error:
                    raise StorageError(f"{item.path} cannot be opened: {error.strerror}.") from None
                self._descriptors[item.path] = opened
            return self._descriptors[item.path]

    def _buffer(self, length: int) -> memoryview:
        """Return this thread's buffer. Mapped memory is aligned as direct reads need it."""
        size = -(-length // ALIGNMENT) * ALIGNMENT if self._direct else length
        if getattr(self._thread, "size", 0) < size:
            self._thread.buffer, self._thread.size = memoryview(mmap.mmap(-1, size)), size
        buffer: memoryview = self._thread.buffer
        return buffer[:size]


class Remote:
    """Objects of any other store."""

    cache = "unknown: caches of the store or a gateway cannot be observed from here"
    gpu_direct: GpuDirect | None = None

    def __init__(self, store: Store, objects: Sequence[ObjectInfo]) -> None:
        self._store, self.objects = store, objects
        # memory:// is not shared, and others may not be
        self.shared = is_s3(objects[0].url)

    @property
    def client(self) -> str:
        return self._store.client

    @property
    def notes(self) -> Sequence[str]:
        return self._store.notes

    def read(self, item: ObjectInfo, offset: int, length: int) -> int:
        return len(self._store.read(item, [(offset, length)])[0])

    def close(self) -> None:
        pass
