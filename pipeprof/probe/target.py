"""What is probed: bytes of objects, read by many threads at once, past the page cache if that can
be."""

from __future__ import annotations

import mmap
import os
import threading
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from pipeprof.errors import StorageError
from pipeprof.storage import ObjectInfo, open_store
from pipeprof.storage.explain import reason
from pipeprof.storage.urls import filesystem, is_local

_ALIGNED = 4096
"""Direct reads begin and end at multiples of it."""


class Target(Protocol):
    client: str
    """How it reads, in words."""
    cache: str
    """What is known of caches in between, in words."""
    objects: Sequence[ObjectInfo]

    def read(self, item: ObjectInfo, offset: int, length: int) -> int:
        """Bytes got. Called by many threads. Raises `StorageError`."""
        ...

    def close(self) -> None: ...


def open_target(url: str, options: Mapping[str, Any] | None = None) -> Target:
    """The objects that ``url`` names. Raises `UsageError`, `StorageError`, `NothingFound`."""
    objects = [item for item in open_store(url, options).find(url) if item.size]
    if not objects:
        raise StorageError(f"{url} holds nothing but empty files: there is nothing to read.")
    return Files(objects) if is_local(url) else Remote(url, objects, options)


class Files:
    """Local files, with O_DIRECT where all of them allow that."""

    def __init__(self, objects: Sequence[ObjectInfo]) -> None:
        self.objects = objects
        self._mine = threading.local()
        self._descriptors: dict[str, int] = {}
        self._lock = threading.Lock()
        self._direct = getattr(os, "O_DIRECT", 0)
        try:
            self._open(objects[0])
        except StorageError:
            self._direct = 0
            self._open(objects[0])
        if self._direct:
            self.client, self.cache = "direct reads", "past this machine's page cache"
        else:
            self.client = "reads through the page cache"
            self.cache = "unknown: this file system allows no direct reads"

    def read(self, item: ObjectInfo, offset: int, length: int) -> int:
        descriptor = self._descriptors.get(item.path) or self._open(item)
        try:
            return os.preadv(descriptor, [self._buffer(length)], offset)
        except OSError as error:
            raise StorageError(f"{item.path} cannot be read: {error.strerror}.") from None

    def close(self) -> None:
        while self._descriptors:
            os.close(self._descriptors.popitem()[1])

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
        whole = -(-length // _ALIGNED) * _ALIGNED if self._direct else length
        if getattr(self._mine, "length", 0) < whole:
            self._mine.view, self._mine.length = memoryview(mmap.mmap(-1, whole)), whole
        view: memoryview = self._mine.view
        return view[:whole]


class Remote:
    """Objects of an fsspec file system."""

    def __init__(
        self, url: str, objects: Sequence[ObjectInfo], options: Mapping[str, Any] | None = None
    ) -> None:
        self._fs, _ = filesystem(url, dict(options or {}))
        self.objects = objects
        self.client = f"fsspec {type(self._fs).__name__}"
        self.cache = "unknown: what the store or a gateway keeps cannot be seen from here"

    def read(self, item: ObjectInfo, offset: int, length: int) -> int:
        try:
            return len(self._fs.cat_file(item.path, offset, offset + length))
        except Exception as error:
            raise StorageError(f"{item.url} cannot be read: {reason(error)}.") from None

    def close(self) -> None:
        pass
