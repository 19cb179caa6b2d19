"""Names of places: a path, ``file://…``, or any URL that fsspec knows."""

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
    """The path that a local URL names, absolute."""
    return os.path.abspath(os.path.expanduser(url.removeprefix("file://")))


def redact(url: str) -> str:
    """``url`` without user name, password, query and fragment: fit for a report or a log."""
    if is_local(url):
        return url
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}{parts.path}"


def join(url: str, name: str) -> str:
    """The URL of ``name`` in the folder ``url``."""
    return f"{url.rstrip('/')}/{name}" if url.rstrip("/") else f"/{name}"


def filesystem(url: str, options: dict[str, Any] | None = None) -> tuple[AbstractFileSystem, str]:
    """The fsspec file system of ``url``, and the path in it; writing goes this way with any
    client.

    Raises `UsageError` for a scheme that nothing serves. The message never holds ``options``.
    """
    import fsspec

    given = {name: value for name, value in (options or {}).items() if name != "s3_client"}
    try:
        fs, path = fsspec.core.url_to_fs(url, **given)
    except (ValueError, ImportError) as error:
        raise UsageError(f"{redact(url)} cannot be opened: {error}.") from None
    _made[id(fs)] = fs
    return fs, path


def _keep_inherited() -> None:
    """In a forked child, let no client of the parent's be closed: the two share one epoll, and
    the parent would no longer hear its own connections, until they time out after 15 s."""
    _inherited.extend(_made.values())


_made: WeakValueDictionary[int, AbstractFileSystem] = WeakValueDictionary()
_inherited: list[AbstractFileSystem] = []
os.register_at_fork(after_in_child=_keep_inherited)
