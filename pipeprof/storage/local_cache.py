"""Keep what is read from a remote storage in files of a local folder."""

from __future__ import annotations

import fcntl
import hashlib
import logging
import os
import secrets
from collections.abc import Sequence
from contextlib import suppress
from itertools import accumulate
from pathlib import Path

from pipeprof.errors import OutputError, StorageError
from pipeprof.log import log_caught
from pipeprof.model import ReadOptions
from pipeprof.storage.base import Buffer, ObjectInfo, Store
from pipeprof.storage.local import LocalStore

_log = logging.getLogger(__name__)

_TOTAL = "total"
"""The file with the number of bytes that the folder holds, for all processes that write to it."""


class CachedStore:
    """Reads from a folder what was read before, and all else from another store.

    A file of the folder holds the bytes of one read, which is what a data set repeats in each
    epoch. It appears whole or not at all, so that processes may share the folder. When the folder
    is full, what is there stays: a cache that made room by the oldest would lose each file just
    before the next epoch reads it.
    """

    def __init__(self, store: Store, read: ReadOptions) -> None:
        """Cache ``store`` in ``read.local_cache``, which is created if needed.

        Raises:
            OutputError: The folder cannot be made or written.
        """
        assert read.local_cache is not None
        self._store, self._folder, self._limit = store, read.local_cache, read.local_cache_bytes
        self._files = LocalStore(read)
        try:
            os.makedirs(self._folder, exist_ok=True)
            self._count()
        except OSError as error:
            raise unusable(self._folder, error) from None

    @property
    def client(self) -> str:
        return f"{self._store.client} behind a local cache"

    @property
    def notes(self) -> tuple[str, ...]:
        return self._store.notes

    @property
    def one_at_a_time(self) -> bool:
        return self._store.one_at_a_time

    def find(self, url: str) -> list[ObjectInfo]:
        return self._store.find(url)

    def read(self, item: ObjectInfo, ranges: Sequence[tuple[int, int]]) -> list[Buffer]:
        lengths = [length for _, length in ranges]
        path = os.path.join(self._folder, _name_of(item, ranges))
        if os.path.exists(path):
            ends = list(accumulate(lengths))
            places = zip([0, *ends], lengths, strict=False)
            try:
                return self._files.read(ObjectInfo(path, path, sum(lengths)), list(places))
            except StorageError as error:  # somebody emptied the folder since
                log_caught(_log, error, "what was cached is read again")
            finally:
                self._files.close()  # the file may be replaced
        buffers = self._store.read(item, ranges)
        try:
            self._keep(path, buffers, sum(lengths))
        except OSError as error:  # as on a full disk: training must not end
            log_caught(_log, error, "what was read is not cached")
        return buffers

    def _keep(self, path: str, buffers: Sequence[Buffer], count: int) -> None:
        """Write the file of a read, unless the folder would hold too much. Raises `OSError`."""
        total = self._count(count)
        if self._limit is not None and total > self._limit:
            self._count(-count)
            return
        partial = f"{path}.{secrets.token_hex(4)}"
        try:
            with open(partial, "wb") as file:
                file.writelines(buffers)
            os.replace(partial, path)
        except OSError:
            with suppress(OSError):
                os.unlink(partial)
            self._count(-count)
            raise

    def _count(self, added: int = 0) -> int:
        """Add to the number of bytes in the folder, and return it. Raises `OSError`."""
        with Path(self._folder, _TOTAL).open("a+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            saved = file.read()
            total = (int(saved) if saved.isdigit() else 0) + added
            file.truncate(0)
            file.write(b"%d" % max(0, total))
        return total


def unusable(folder: str, error: OSError) -> OutputError:
    """Return the error of a folder that cannot be a cache."""
    return OutputError(f"{folder} cannot be a local cache: {os.strerror(error.errno or 0)}.")


def cached_files(folder: str) -> list[str]:
    """Return the paths of the files of a cache, which hold data; and of those being written."""
    return [os.path.join(folder, name) for name in os.listdir(folder)]


def _name_of(item: ObjectInfo, ranges: Sequence[tuple[int, int]]) -> str:
    return hashlib.sha256(repr((item.url, item.size, *ranges)).encode()).hexdigest()
