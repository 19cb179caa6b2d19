"""Read and write objects on local disks, S3 and any other file system of fsspec."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pipeprof.model import ReadOptions
from pipeprof.storage.base import Buffer, ObjectInfo, Store
from pipeprof.storage.urls import is_local, is_s3

__all__ = ["Buffer", "ObjectInfo", "Store", "open_store"]


def open_store(
    url: str, options: Mapping[str, Any] | None = None, read: ReadOptions | None = None
) -> Store:
    """Return the store that serves ``url``.

    Args:
        url: A path, ``file://…``, ``s3://…`` or another URL of fsspec.
        options: The storage options of fsspec. ``s3_client`` chooses the client of S3:
            ``obstore``, ``pyarrow`` or ``s3fs``.
        read: How local files are read, and where a cache of others is.

    Raises:
        UsageError: No installed file system serves the scheme, or there is no such client.
        OutputError: The folder of the cache cannot be made.
    """
    if read is not None and read.local_cache is not None:
        from pipeprof.storage.local_cache import CachedStore

        return CachedStore(open_store(url, options, replace(read, local_cache=None)), read)
    if is_local(url):
        from pipeprof.storage.local import LocalStore

        return LocalStore(read)
    if is_s3(url):
        from pipeprof.storage.s3.store import S3Store

        return S3Store(options)
    from pipeprof.storage.remote import RemoteStore

    return RemoteStore(url, options)
