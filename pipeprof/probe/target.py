"""What is probed: bytes of objects, read by many threads at once, past the page cache if that can
be."""

from __future__ import annotations

import mmap
import os
import threading
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from pipeprof.errors import StorageError
from pipeprof.storage import ObjectInfo, Store, open_store
from pipeprof.storage.local_reads import ALIGNED
from pipeprof.storage.urls import is_local, is_s3, redact

_MOST_FILES = 256
"""That are open at a time; of more, as many are read, spread over all."""


class Target(Protocol):
    """Picklable: a process that unpickles it gets a client of its own."""

    objects: Sequence[ObjectInfo]
    cache: str
    """What is known of caches in between, in words."""

    shared: bool
    """Whether other processes are sure to find the same objects."""

    @property
    def client(self) -> str:
        """How it reads, in words."""
        ...

    @property
    def notes(self) -> Sequence[str]:
        """Sentences: what else a reader of the result should know, once it has been read."""
        ...

    def read(self, item: ObjectInfo, offset: int, length: int) -> int:
        """Bytes got. Called by many threads. Raises `StorageError`."""
        ...

    def close(self) -> None: ...


def open_target(url: str, options: Mapping[str, Any] | None = None) -> Target:
    """The objects that ``url`` names. Raises `UsageError`, `StorageError`, `NothingFound`."""
    store = open_store(url, options)
    objects = [item for item in store.find(url) if item.size]
    if not objects:
        raise StorageError(f"{redact(url)} holds only empty files: there is nothing to read.")
    if is_local(url):
        return Files(objects[:: -(-len(objects) // _MOST_FILES)])
    # before anything is timed, and before other processes begin: of S3, the first answer may tell
    # that another client is needed
    store.read(objects[0], [(0, 1)])
    return Remote(store, objects)


class Files:
    """Local files, with O_DIRECT where all of them allow that.

    Not by `storage.local_reads`, whose care for memory and for what is cached takes longer than
    all that is done here: of small blocks it would be measured too.
    """

    notes = ()
    shared = True

    def __init__(self, objects: Sequence[ObjectInfo]) -> None:
        self.objects = objects
        self._mine = threading.local()
        self._descriptors: dict[str, int] = {}
        self._lock = threading.Lock()
        self._direct = getattr(os, "O_DIRECT", 0)
        try:
            self.read(objects[0], 0, ALIGNED)
        except StorageError:  # refused when it is opened, or only when it is read
            self.close()
            self._direct = 0
            self.read(objects[0], 0, ALIGNED)
        if self._direct:
            self.client, self.cache = "direct reads", "past this machine's page cache"
        else:
            self.client = "reads through the page cache"
            self.cache = "unknown: this file system allows no direct reads"

    def read(self, item: ObjectInfo, offset: int, length: int) -> int:
        descriptor = self._descriptors.get(item.path) or self._open(item)
        try:
            got = os.preadv(descriptor, [self._buffer(length)], offset)
        except OSError as error:
            raise StorageError(f"{item.path} cannot be read: {error.strerror}.") from None
        if not got:
            raise StorageError(f"{item.path} has become shorter since it was listed.")
        return got

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
        """Of this thread, used again and again; mapped memory is aligned as direct reads need."""
        whole = -(-length // ALIGNED) * ALIGNED if self._direct else length
        if getattr(self._mine, "length", 0) < whole:
            self._mine.view, self._mine.length = memoryview(mmap.mmap(-1, whole)), whole
        view: memoryview = self._mine.view
        return view[:whole]


class Remote:
    """Objects of any other store."""

    cache = "unknown: what the store or a gateway keeps cannot be seen from here"

    def __init__(self, store: Store, objects: Sequence[ObjectInfo]) -> None:
        self._store, self.objects = store, objects
        # memory:// is not shared, and who knows what others are
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
