"""Objects and byte ranges: local files, and any file system that fsspec knows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipeprof.storage.base import Buffer, ObjectInfo, Store
from pipeprof.storage.urls import is_local

__all__ = ["Buffer", "ObjectInfo", "Store", "open_store"]


def open_store(url: str, options: Mapping[str, Any] | None = None) -> Store:
    """The store that serves ``url``; ``options`` go to fsspec. Raises `UsageError`."""
    if is_local(url):
        from pipeprof.storage.local import LocalStore

        return LocalStore()
    from pipeprof.storage.remote import RemoteStore

    return RemoteStore(url, options)
