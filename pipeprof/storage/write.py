"""Objects written whole or not at all, on local disks and on any file system that fsspec knows."""

from __future__ import annotations

import errno
import logging
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from pipeprof.atomic import Writable, whole_file, write_all
from pipeprof.errors import OutputError
from pipeprof.log import log_caught, suppress_and_log
from pipeprof.storage.errors import reason
from pipeprof.storage.urls import filesystem, is_local, local_path, redact
from pipeprof.units import format_bytes

_log = logging.getLogger(__name__)

_FULL = (errno.ENOSPC, errno.EDQUOT)
_FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)
_NOT_A_FOLDER = (errno.ENOTDIR, errno.EEXIST)

Explain = Callable[[Exception], OutputError]


class Sink:
    """Takes the bytes of one object, in order."""

    def __init__(self, file: Writable, explain: Explain) -> None:
        self._file = file
        self._explain = explain
        self.size = 0
        """Bytes taken so far."""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Raises `OutputError`."""
        self.size += len(data)
        with _explained(self._explain):
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
    explain = partial(_local_error, target, "written", needs)
    with _explained(explain):
        target.parent.mkdir(parents=True, exist_ok=True)
    try:
        with whole_file(target) as file:
            yield Sink(file, explain)
    except OSError as error:
        raise explain(error) from None


@contextmanager
def _writing_remotely(url: str, options: Mapping[str, Any] | None) -> Iterator[Sink]:
    fs, path = filesystem(url, dict(options or {}))
    explain = partial(_remote_error, url, "written")
    # in a transaction a closed file is kept back until it is committed; outside, it is not
    transaction = fs.transaction
    transaction.start()
    try:
        with _explained(explain):
            file = fs.open(path, "wb")
        try:
            yield Sink(file, explain)
        except BaseException:
            with suppress_and_log(_log, "an object that is given up was not closed"):
                file.close()
            raise
        with _explained(explain):
            file.close()
    except BaseException:
        with suppress_and_log(_log, "a transaction that is given up was not ended"):
            transaction.complete(commit=False)
        raise
    with _explained(explain):
        transaction.complete()


def object_sizes(folder: str, options: Mapping[str, Any] | None = None) -> dict[str, int]:
    """Name → bytes of all that lies directly in ``folder``; folders in it end with ``/``.

    Empty when there is no such folder. Raises `OutputError` when it is a file, or unreadable.
    """
    if is_local(folder):
        path = Path(local_path(folder))
        with _explained(partial(_local_error, path, "listed", None)):
            try:
                found = sorted(path.iterdir())
            except FileNotFoundError:
                return {}
            return {f"{e.name}/" if e.is_dir() else e.name: e.lstat().st_size for e in found}
    fs, root = filesystem(folder, dict(options or {}))
    with _explained(partial(_remote_error, folder, "listed")):
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
    if is_local(url):
        path = Path(local_path(url))
        with _explained(partial(_local_error, path, "read", None)):
            return path.read_bytes()
    fs, name = filesystem(url, dict(options or {}))
    with _explained(partial(_remote_error, url, "read")):
        data: bytes = fs.cat_file(name)
        return data


def remove_object(url: str, options: Mapping[str, Any] | None = None) -> None:
    """Gone afterwards, also when it was not there. Raises `OutputError`."""
    if is_local(url):
        path = Path(local_path(url))
        with _explained(partial(_local_error, path, "removed", None)):
            path.unlink(missing_ok=True)
        return
    fs, name = filesystem(url, dict(options or {}))
    with _explained(partial(_remote_error, url, "removed")), suppress(FileNotFoundError):
        fs.rm_file(name)


@contextmanager
def _explained(explain: Explain) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        log_caught(_log, error, "nothing was written or removed")
        raise explain(error) from None


def _local_error(path: Path, what: str, needs: int | None, error: Exception) -> OutputError:
    code = error.errno if isinstance(error, OSError) else None
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


def _remote_error(url: str, what: str, error: Exception) -> OutputError:
    return OutputError(f"{redact(url)} cannot be {what}: {reason(error)}.")
