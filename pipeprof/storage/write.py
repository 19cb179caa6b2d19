"""Write objects whole or not at all, on local disks and on any other file system of fsspec."""

from __future__ import annotations

import errno
import logging
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeprof.atomic import Writable, whole_file, write_all
from pipeprof.errors import OutputError
from pipeprof.log import log_caught, suppress_and_log
from pipeprof.storage.errors import classify
from pipeprof.storage.urls import filesystem, is_local, join, local_path, redact
from pipeprof.units import format_bytes

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

_log = logging.getLogger(__name__)

Stamp = tuple[object, ...]
_STAMPS = ("size", "mtime", "ino", "LastModified", "last_modified", "updated", "created", "ETag")
"""Entries of fsspec's file systems that change when an object is written again."""
_DISK_FULL = (errno.ENOSPC, errno.EDQUOT)
_FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)
_NOT_A_FOLDER = (errno.ENOTDIR, errno.EEXIST)


class Sink:
    """Writes the bytes of one object in order."""

    def __init__(self, file: Writable, url: str, needs: int | None = None) -> None:
        self._file = file
        self._url, self._needs = url, needs
        self.size = 0
        """The number of bytes written so far."""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Write ``data`` behind what was written before. Raises `OutputError`."""
        self.size += len(data)
        with _output_errors(self._url, "written", self._needs):
            write_all(self._file, data)


@contextmanager
def open_object(
    url: str, options: Mapping[str, Any] | None = None, needs: int | None = None
) -> Iterator[Sink]:
    """Write the object ``url``, which appears only when the body ends without an exception.

    ``needs`` is an estimate of the bytes still to be written, for the message when the disk is
    full. Raises `OutputError`. Nothing is left behind after any exception.
    """
    writing = _writing_locally(url, needs) if is_local(url) else _writing_remotely(url, options)
    with writing as sink:
        yield sink


@contextmanager
def _writing_locally(url: str, needs: int | None) -> Iterator[Sink]:
    target = Path(local_path(url))
    with _output_errors(url, "written", needs):
        target.parent.mkdir(parents=True, exist_ok=True)
    try:
        with whole_file(target) as file:
            yield Sink(file, url, needs)
    except OSError as error:
        raise _local_error(url, "written", needs, error) from None


@contextmanager
def _writing_remotely(url: str, options: Mapping[str, Any] | None) -> Iterator[Sink]:
    fs, path = _place(url, options)
    # a file closed within a transaction appears only when that is committed
    transaction = fs.transaction
    transaction.start()
    try:
        with _output_errors(url, "written"):
            file = fs.open(path, "wb")
        try:
            yield Sink(file, url)
        except BaseException:
            with suppress_and_log(_log, "an abandoned object was not closed"):
                file.close()
            raise
        with _output_errors(url, "written"):
            file.close()
    except BaseException:
        with suppress_and_log(_log, "an abandoned transaction was not ended"):
            transaction.complete(commit=False)
        raise
    with _output_errors(url, "written"):
        transaction.complete()


def object_sizes(folder: str, options: Mapping[str, Any] | None = None) -> dict[str, int]:
    """Map the name of each entry of ``folder`` to its bytes; names of folders end with ``/``.

    The result is empty when there is no such folder. Raises `OutputError` when it is a file, or
    cannot be listed.
    """
    fs, root = _place(folder, options)
    with _output_errors(folder, "listed"):
        try:
            fs.invalidate_cache(root)
            entries = {entry["name"].strip("/"): entry for entry in fs.ls(root, detail=True)}
        except FileNotFoundError:
            return {}
    folder_entry = entries.pop(root.strip("/"), None)
    if folder_entry is not None and folder_entry["type"] == "file":
        raise OutputError(f"{redact(folder)} is an object; name a folder.")
    return {
        name.rpartition("/")[2] + ("/" if entry["type"] == "directory" else ""): entry["size"] or 0
        for name, entry in entries.items()
    }


def objects_below(folder: str, pattern: str = "**") -> dict[str, Stamp]:
    """Map the URL of each object below ``folder`` to a stamp, which changes when the object is
    written again. ``pattern`` is a glob within the folder.

    The result is empty when there is no such folder. Raises `OutputError` when it cannot be listed.
    """
    fs, root = _place(folder, None)
    root = root.rstrip("/")
    with _output_errors(folder, "listed"):
        fs.invalidate_cache(root)
        try:
            found: dict[str, dict[str, Any]] = fs.glob(join(escape(root), pattern), detail=True)
        except FileNotFoundError:
            return {}
    return {
        join(folder, name.removeprefix(root).lstrip("/")): tuple(map(entry.get, _STAMPS))
        for name, entry in found.items()
        if entry["type"] == "file"
    }


def read_object(url: str, options: Mapping[str, Any] | None = None) -> bytes:
    """Return all bytes of a small object. Raises `OutputError`."""
    fs, path = _place(url, options)
    with _output_errors(url, "read"):
        data: bytes = fs.cat_file(path)
        return data


def remove_object(url: str, options: Mapping[str, Any] | None = None) -> None:
    """Remove an object if it exists. Raises `OutputError`."""
    fs, path = _place(url, options)
    with _output_errors(url, "removed"), suppress(FileNotFoundError):
        fs.rm_file(path)


def _place(url: str, options: Mapping[str, Any] | None) -> tuple[AbstractFileSystem, str]:
    """Return the file system that holds ``url``, and the path in it. Raises `UsageError`."""
    if not is_local(url):
        return filesystem(url, dict(options or {}))
    from fsspec.implementations.local import LocalFileSystem

    return LocalFileSystem(), local_path(url)


@contextmanager
def _output_errors(url: str, done: str, needs: int | None = None) -> Iterator[None]:
    """Raise an error of the body as an `OutputError`: ``url`` cannot be ``done``."""
    try:
        yield
    except Exception as error:
        log_caught(_log, error, "nothing was written or removed")
        if is_local(url):
            raise _local_error(url, done, needs, error) from None
        raise OutputError(f"{redact(url)} cannot be {done}: {classify(error).reason}.") from None


def _local_error(url: str, done: str, needs: int | None, error: Exception) -> OutputError:
    path, code = Path(local_path(url)), error.errno if isinstance(error, OSError) else None
    if code in _DISK_FULL:
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
    return OutputError(f"{path} cannot be {done}: {why}.")
