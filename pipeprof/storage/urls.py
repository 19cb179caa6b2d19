"""Parse, join and redact URLs: a path, ``file://…``, or any other URL of fsspec."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from weakref import WeakValueDictionary

from pipeprof.errors import UsageError

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem


def is_local(url: str) -> bool:
    return "://" not in url or url.startswith("file://")


def is_s3(url: str) -> bool:
    return url.startswith(("s3://", "s3a://"))


def local_path(url: str) -> str:
    """Return the absolute path of a local URL."""
    return os.path.abspath(os.path.expanduser(url.removeprefix("file://")))


def redact(url: str) -> str:
    """Return ``url`` without user name, password, query and fragment, for reports and logs. It may
    be a chain, such as ``polars::s3://…``."""
    first, chained, rest = url.partition("::")
    if chained:
        return f"{redact(first)}::{redact(rest)}"
    if is_local(url):
        return url
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}{parts.path}"


def join(url: str, name: str) -> str:
    """Return the URL of ``name`` in the folder ``url``."""
    return f"{url.rstrip('/')}/{name}" if url.rstrip("/") else f"/{name}"


def filesystem(url: str, options: dict[str, Any] | None = None) -> tuple[AbstractFileSystem, str]:
    """Return the fsspec file system of ``url``, and the path in it. Raises `UsageError` for a
    scheme that no file system serves. The message never holds ``options``."""
    import fsspec

    known = {name: value for name, value in (options or {}).items() if name != "s3_client"}
    try:
        fs, path = fsspec.core.url_to_fs(url, **known)
    except (ValueError, ImportError) as error:
        raise UsageError(f"{redact(url)} cannot be opened: {error}.") from None
    _created[id(fs)] = fs
    return fs, path


def _keep_inherited() -> None:
    """Keep the clients of the parent open in a forked child.

    Parent and child share one epoll. If the child closed a client, the parent would get no events
    of its own connections, and each would time out after 15 s.
    """
    _inherited.extend(_created.values())


_created: WeakValueDictionary[int, AbstractFileSystem] = WeakValueDictionary()
_inherited: list[AbstractFileSystem] = []
os.register_at_fork(after_in_child=_keep_inherited)
