"""Local files: positional reads on descriptors that stay open."""

from __future__ import annotations

import glob
import os
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

from pipeprof.errors import NothingFound, StorageError
from pipeprof.measure.spans import record
from pipeprof.model import Span, Stage
from pipeprof.storage.base import Buffer, ObjectInfo, is_hidden
from pipeprof.storage.urls import local_path

_OPEN_FILES = 64


class LocalStore:
    """Files of this machine, network mounts included."""

    def __init__(self) -> None:
        self._descriptors: OrderedDict[str, int] = OrderedDict()

    def find(self, url: str) -> list[ObjectInfo]:
        path = local_path(url)
        try:
            if os.path.isfile(path):
                found = [path]
            elif os.path.isdir(path):
                found = _files_below(path)
            else:
                found = [name for name in glob.glob(path, recursive=True) if Path(name).is_file()]
            items = [ObjectInfo(name, name, Path(name).stat().st_size) for name in sorted(found)]
        except OSError as error:
            culprit = error.filename or path
            raise StorageError(f"{culprit} cannot be listed: {error.strerror}.") from None
        if items:
            return items
        if Path(path).is_dir():
            raise NothingFound(f"{path} is a folder without data files; check the path.")
        raise NothingFound(f"{path} does not exist, and matches no file; check the path.")

    def read(self, item: ObjectInfo, ranges: Sequence[tuple[int, int]]) -> list[Buffer]:
        start = perf_counter()
        try:
            descriptor = self._open(item.path)
            buffers: list[Buffer] = [
                _read_exactly(descriptor, offset, length, item.path) for offset, length in ranges
            ]
        except OSError as error:
            raise StorageError(f"{item.path} cannot be read: {error.strerror}.") from None
        count = sum(length for _, length in ranges)
        record(Span(Stage.READ, start, perf_counter(), bytes=count, requests=len(ranges)))
        return buffers

    def _open(self, path: str) -> int:
        if path in self._descriptors:
            self._descriptors.move_to_end(path)
            return self._descriptors[path]
        if len(self._descriptors) >= _OPEN_FILES:
            os.close(self._descriptors.popitem(last=False)[1])
        self._descriptors[path] = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        return self._descriptors[path]

    def close(self) -> None:
        while self._descriptors:
            os.close(self._descriptors.popitem()[1])

    def __del__(self) -> None:
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        return {}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._descriptors = OrderedDict()


def _files_below(root: str) -> list[str]:
    def complain(error: OSError) -> None:
        raise error

    found = []
    for folder, folders, names in os.walk(root, onerror=complain, followlinks=True):
        folders[:] = [name for name in folders if not is_hidden(name)]
        found += [f"{folder.rstrip('/')}/{name}" for name in names if not is_hidden(name)]
    return found


def _read_exactly(descriptor: int, offset: int, length: int, path: str) -> Buffer:
    data = os.pread(descriptor, length, offset)
    if len(data) == length:
        return data
    # one pread gives at most 2 GiB, and may be cut short by a signal or a network mount
    parts = bytearray(data)
    while len(parts) < length:
        more = os.pread(descriptor, length - len(parts), offset + len(parts))
        if not more:
            raise StorageError(
                f"{path} ended at byte {offset + len(parts):,} where {offset + length:,} were "
                "expected: it was cut short or replaced since it was listed."
            )
        parts += more
    return parts
