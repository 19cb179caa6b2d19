"""Objects written whole or not at all, on local disks and on any file system that fsspec knows."""

from __future__ import annotations

import errno
import logging
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeprof.atomic import Writable, whole_file, write_all
from pipeprof.errors import OutputError
from pipeprof.log import log_caught, suppress_and_log
from pipeprof.storage.errors import reason
from pipeprof.storage.urls import filesystem, is_local, local_path, redact
from pipeprof.units import format_bytes

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

_log = logging.getLogger(__name__)

_FULL = (errno.ENOSPC, errno.EDQUOT)
_FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)
_NOT_A_FOLDER = (errno.ENOTDIR, errno.EEXIST)


class Sink:
    """Takes the bytes of one object, in order."""

    def __init__(self, file: Writable, url: str, needs: int | None = None) -> None:
        self._file = file
        self._url, self._needs = url, needs
        self.size = 0
        """Bytes taken so far."""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Raises `OutputError`."""
        self.size += len(data)
        with _explained(self._url, "written", self._needs):
            write_all(self._file, data)


@contextmanager
def open_object(
    url: str, options: Mapping[str, Any] | None = None, needs: int | None = None
) -> Iterator[Sink]:
    """Write the object ``url``; it appears only when the body ends without an exception.

    ``needs``: about the bytes still to be written, told to the user when the disk is full.
    Raises `OutputError`; whatever is raised, nothing is left behind.
    """
    writing = _writing_locally(url, needs) if is_local(url) else _writing_remotely(url, options)
    with writing as sink:
        yield sink


@contextmanager
def _writing_locally(url: str, needs: int | None) -> Iterator[Sink]:
    target = Path(local_path(url))
    with _explained(url, "written", needs):
        target.parent.mkdir(parents=True, exist_ok=True)
    try:
        with whole_file(target) as file:
            yield Sink(file, url, needs)
    except OSError as error:
        raise _local_error(url, "written", needs, error) from None


@contextmanager
def _writing_remotely(url: str, options: Mapping[str, Any] | None) -> Iterator[Sink]:
    fs, path = _place(url, options)
    # in a transaction a closed file is kept back until it is committed; outside, it is not
    transaction = fs.transaction
    transaction.start()
    try:
        with _explained(url, "written"):
            file = fs.open(path, "wb")
        try:
            yield Sink(file, url)
        except BaseException:
            with suppress_and_log(_log, "an object that is given up was not closed"):
                file.close()
            raise
        with _explained(url, "written"):
            file.close()
    except BaseException:
        with suppress_and_log(_log, "a transaction that is given up was not ended"):
            transaction.complete(commit=False)
        raise
    with _explained(url, "written"):
        transaction.complete()


def object_sizes(folder: str, options: Mapping[str, Any] | None = None) -> dict[str, int]:
    """Name → bytes of all that lies directly in ``folder``; folders in it end with ``/``.

    Empty when there is no such folder. Raises `OutputError` when it is a file, or unreadable.
    """
    fs, root = _place(folder, options)
    with _explained(folder, "listed"):
        try:
            fs.invalidate_cache(root)
            entries = {entry["name"].strip("/"): entry for entry in fs.ls(root, detail=True)}
        except FileNotFoundError:
            return {}
    itself = entries.pop(root.strip("/"), None)
    if itself is not None and itself["type"] == "file":
        raise OutputError(f"{redact(folder)} is an object; name a folder.")
    return {
        name.rpartition("/")[2] + ("/" if entry["type"] == "directory" else ""): entry["size"] or 0
        for name, entry in entries.items()
    }


def read_object(url: str, options: Mapping[str, Any] | None = None) -> bytes:
    """A small object, whole. Raises `OutputError`."""
    fs, path = _place(url, options)
    with _explained(url, "read"):
        data: bytes = fs.cat_file(path)
        return data


def remove_object(url: str, options: Mapping[str, Any] | None = None) -> None:
    """Gone afterwards, also when it was not there. Raises `OutputError`."""
    fs, path = _place(url, options)
    with _explained(url, "removed"), suppress(FileNotFoundError):
        fs.rm_file(path)


def _place(url: str, options: Mapping[str, Any] | None) -> tuple[AbstractFileSystem, str]:
    """The file system that holds ``url``, and the path in it. Raises `UsageError`."""
    if not is_local(url):
        return filesystem(url, dict(options or {}))
    from fsspec.implementations.local import LocalFileSystem

    return LocalFileSystem(), local_path(url)


@contextmanager
def _explained(url: str, what: str, needs: int | None = None) -> Iterator[None]:
    """Raise an error of the body as the `OutputError` that says that ``url`` cannot be ``what``."""
    try:
        yield
    except Exception as error:
        log_caught(_log, error, "nothing was written or removed")
        if is_local(url):
            raise _local_error(url, what, needs, error) from None
        raise OutputError(f"{redact(url)} cannot be {what}: {reason(error)}.") from None


def _local_error(url: str, what: str, needs: int | None, error: Exception) -> OutputError:
    path, code = Path(local_path(url)), error.errno if isinstance(error, OSError) else None
    if code in _FULL:
        why = "the disk is full" if code == errno.ENOSPC else "the disk quota is used up"
        if needs is not None:
            why += f"; about {format_bytes(needs)} more are needed"
        with suppress(OSError):
            why += f", {format_bytes(shutil.disk_usage(path.parent).free)} are free"
    elif code in _FORBIDDEN:
        why = f"{os.strerror(code).lower()}; choose a folder that you may write to"
    elif code in _NOT_A_FOLDER:
        why = "a part of this path is a file where a folder is needed"
    else:
        why = os.strerror(code).lower() if code else str(error)
    return OutputError(f"{path} cannot be {what}: {why}.")
