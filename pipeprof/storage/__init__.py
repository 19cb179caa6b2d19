"""Objects and byte ranges: local files, S3, and any file system that fsspec knows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipeprof.model import ReadOptions
from pipeprof.storage.base import Buffer, ObjectInfo, Store
from pipeprof.storage.urls import is_local, is_s3

__all__ = ["Buffer", "ObjectInfo", "Store", "open_store"]


def open_store(
    url: str, options: Mapping[str, Any] | None = None, read: ReadOptions | None = None
) -> Store:
    """The store that serves ``url``. ``options`` go to fsspec; of S3, ``s3_client`` names the
    client: ``obstore``, ``pyarrow`` or ``s3fs``. ``read`` says how local files are read. Raises
    `UsageError`."""
    if is_local(url):
        from pipeprof.storage.local import LocalStore

        return LocalStore(read)
    if is_s3(url):
        from pipeprof.storage.s3.store import S3Store

        return S3Store(options)
    from pipeprof.storage.remote import RemoteStore

    return RemoteStore(url, options)
