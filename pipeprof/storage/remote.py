"""Any file system that fsspec knows: GCS, HTTP, memory."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import Any

from pipeprof.errors import NothingFound, StorageError
from pipeprof.log import log_caught
from pipeprof.measure.stage_timer import Tally, record_read, tallied
from pipeprof.storage.base import Buffer, ObjectInfo, is_hidden
from pipeprof.storage.errors import reason
from pipeprof.storage.urls import filesystem, redact

_log = logging.getLogger(__name__)


class RemoteStore:
    """Objects of one fsspec file system.

    Only the URL and the options travel between processes: a client made before a fork would
    share its sockets and its event loop's dead thread with the child.
    """

    notes: tuple[str, ...] = ()
    one_at_a_time = False

    def __init__(self, url: str, options: Mapping[str, Any] | None = None) -> None:
        self._url = url
        self._options = dict(options or {})
        self._connect()

    def _connect(self) -> None:
        self._fs, self._root = filesystem(self._url, self._options)
        self._pid = os.getpid()

    @property
    def client(self) -> str:
        return f"fsspec {type(self._fs).__name__}"

    def find(self, url: str) -> list[ObjectInfo]:
        fs, path = filesystem(url, self._options)
        try:
            fs.invalidate_cache(path)  # what it listed before may have been replaced since
            found = _find(fs, path.rstrip("/"))
        except Exception as error:
            log_caught(_log, error, "a folder was not listed")
            raise _explained(error, redact(url), "listed") from None
        if not found:
            raise NothingFound(f"{redact(url)} names no object with data; check the URL.")
        return sorted(found, key=lambda item: item.url)

    def read(self, item: ObjectInfo, ranges: Sequence[tuple[int, int]]) -> list[Buffer]:
        if self._pid != os.getpid():
            self._connect()
        start = perf_counter()
        try:
            # what fsspec reads within is this read, and counts once; its requests are noted there
            with tallied(Tally(note_requests=True)):
                buffers: list[Buffer] = self._fs.cat_ranges(
                    [item.path] * len(ranges),
                    [offset for offset, _ in ranges],
                    [offset + length for offset, length in ranges],
                    on_error="raise",
                )
        except Exception as error:
            log_caught(_log, error, "an object was not read")
            raise _explained(error, item.url, "read") from None
        for (offset, length), buffer in zip(ranges, buffers, strict=True):
            if len(buffer) != length:
                raise StorageError(
                    f"{item.url} gave {len(buffer):,} bytes at {offset:,} where {length:,} were "
                    "expected: it was cut short or replaced since it was listed."
                )
        count = sum(length for _, length in ranges)
        record_read(start, perf_counter(), count, len(ranges))
        return buffers

    def __getstate__(self) -> dict[str, Any]:
        return {"_url": self._url, "_options": self._options}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._connect()


def _find(fs: Any, path: str) -> list[ObjectInfo]:
    if any(character in path for character in "*?["):
        entries = fs.glob(path, detail=True)
        root = ""
    elif (itself := _info(fs, path)) and itself["type"] == "file":
        entries = {path: itself}
        root = ""
    else:
        entries = fs.find(path, detail=True)
        root = path.lstrip("/")
    items = []
    for name, info in entries.items():
        relative = name.lstrip("/").removeprefix(root).lstrip("/") if root else ""
        if info.get("type") == "file" and not is_hidden(relative):
            items.append(ObjectInfo(redact(fs.unstrip_protocol(name)), name, int(info["size"])))
    return items


def _info(fs: Any, path: str) -> dict[str, Any] | None:
    """What ``path`` is, where the server tells.

    It may refuse to and yet list what is below, and only then says why. A server that does not
    answer is not asked again: `isfile` would hide that, and listing would try as long once more.
    """
    try:
        info: dict[str, Any] = fs.info(path)
    except OSError as error:
        if "Timeout" in type(error).__name__:
            raise
        return None
    return info


def _explained(error: Exception, url: str, what: str) -> StorageError:
    kind = NothingFound if isinstance(error, FileNotFoundError) else StorageError
    return kind(f"{url} cannot be {what}: {reason(error)}.")
