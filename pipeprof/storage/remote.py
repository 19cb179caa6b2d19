"""Read objects of any file system of fsspec, for example GCS, HTTP or memory."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import Any

from pipeprof.errors import NothingFound
from pipeprof.log import log_caught
from pipeprof.measure.stage_timer import Tally, record_read, tallied
from pipeprof.storage.base import Buffer, ObjectInfo, is_hidden
from pipeprof.storage.errors import classify, shrunk_error, storage_error
from pipeprof.storage.urls import filesystem, redact

_log = logging.getLogger(__name__)


class RemoteStore:
    """Reads objects of one fsspec file system.

    Each process connects anew. A client inherited by a fork would share its sockets with the
    parent, and the thread of its event loop would be missing.
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
            fs.invalidate_cache(path)  # objects may have been replaced since the last listing
            found = _find(fs, path.rstrip("/"))
        except Exception as error:
            log_caught(_log, error, "a folder was not listed")
            raise storage_error(classify(error), redact(url), "listed") from None
        if not found:
            raise NothingFound(f"{redact(url)} names no object with data; check the URL.")
        return sorted(found, key=lambda item: item.url)

    def read(self, item: ObjectInfo, ranges: Sequence[tuple[int, int]]) -> list[Buffer]:
        if self._pid != os.getpid():
            self._connect()
        start = perf_counter()
        try:
            # reads inside fsspec belong to this one; the patches of fsspec note the requests
            with tallied(Tally(note_requests=True)):
                buffers: list[Buffer] = self._fs.cat_ranges(
                    [item.path] * len(ranges),
                    [offset for offset, _ in ranges],
                    [offset + length for offset, length in ranges],
                    on_error="raise",
                )
        except Exception as error:
            log_caught(_log, error, "an object was not read")
            raise storage_error(classify(error), item.url, "read") from None
        for (offset, length), buffer in zip(ranges, buffers, strict=True):
            if len(buffer) != length:
                raise shrunk_error(item.url, offset, length)
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
    elif (info := _info(fs, path)) and info["type"] == "file":
        entries = {path: info}
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
    """Return fsspec's entry of ``path``; None where the server does not give it.

    A server that refuses this may still list the folder, or give a better reason there. A timeout
    is raised at once, because the listing would wait as long again.
    """
    try:
        info: dict[str, Any] = fs.info(path)
    except OSError as error:
        if "Timeout" in type(error).__name__:
            raise
        return None
    return info
