"""Replace Python's `open` by one whose files record their reads as the stage `read`.

The files have the usual types. Only the ``FileIO`` below the buffer is of a subclass, which times
its system calls. Bytes and requests are therefore those of the system calls, read-ahead of the
buffer included. Opening counts as time.

Only a plain, buffered binary file that is opened for reading by its name is recorded. All others
come from the real `open`: an unbuffered one (``Path.read_bytes`` from Python 3.14 on) would be of
another type, and a descriptor may be a pipe. A line of a text file would take 40 ns longer, at
least a twentieth of parsing it.

While a batch is made, opening takes about 1 µs longer, and each system call 0.8 µs. A short read
from the buffer always takes 25 ns longer, as Python is faster with its own ``FileIO``.
"""

from __future__ import annotations

import builtins
import functools
import io
import os
import sys
from collections.abc import Iterable
from inspect import isbuiltin
from time import perf_counter
from typing import Any

from pipeprof.measure.stage_timer import current

_REAL = io.open
_READING = ("rb", "br")
_NAMES = (str, bytes)


Holder = tuple[Any, str]
"""A module or class with an attribute that is `open`, and the attribute's name."""


def patch_open(holders: Iterable[Holder]) -> None:
    """Replace `open` where ``holders`` have it by `recording_open`, for the rest of the process."""
    for owner, name in holders:
        setattr(owner, name, recording_open)


def holders_of_open() -> list[Holder]:
    """Return who holds `open`; nobody where it cannot be replaced."""
    if not (builtins.open is io.open is _REAL and isbuiltin(_REAL)):
        return []  # another library has replaced it, and may not expect a further replacement
    if sys.flags.warn_default_encoding:
        return []  # Python's warning would name our line, not the user's
    modules = sys.modules.get
    holders = [
        (builtins, "open"),
        (io, "open"),
        (modules("tarfile"), "bltn_open"),
        (modules("bz2"), "_builtin_open"),
        (getattr(modules("pathlib"), "_NormalAccessor", None), "open"),  # Python 3.10
    ]
    return [(owner, name) for owner, name in holders if getattr(owner, name, None) is _REAL]


class _ClockedFile(io.FileIO):
    """The raw file below a buffer, which records its reads. The end of the file is no request."""

    def readinto(self, buffer: Any, /) -> Any:
        tally = current.tally
        if tally is None:
            return _readinto(self, buffer)
        start = perf_counter()
        count = _readinto(self, buffer)
        tally.add_read(start, perf_counter(), count or 0, 1 if count else 0)
        return count

    def readall(self) -> Any:
        tally = current.tally
        if tally is None:
            return _readall(self)
        start = perf_counter()
        data = _readall(self)
        tally.add_read(start, perf_counter(), len(data or b""), 1 if data else 0)
        return data


_readinto: Any = io.FileIO.readinto
_readall: Any = io.FileIO.readall


class _Open:
    """A callable with the builtin's name, signature and text, which is pickled by name as that is.
    It is no function, which would become a method where a class has ``open = open``."""

    def __init__(self) -> None:
        functools.update_wrapper(self, _REAL)
        self.__module__ = "io"

    def __repr__(self) -> str:
        return repr(_REAL)

    def __reduce__(self) -> str:
        return "open"

    def __call__(
        self,
        file: Any,
        mode: Any = "r",
        buffering: Any = -1,
        encoding: Any = None,
        errors: Any = None,
        newline: Any = None,
        closefd: Any = True,
        opener: Any = None,
    ) -> Any:
        if (
            type(mode) is str
            and mode in _READING
            and (type(file) in _NAMES or hasattr(type(file), "__fspath__"))
            and type(buffering) is int
            and (buffering == -1 or buffering > 1)
            and encoding is errors is newline is None
            and closefd is True
            and opener is None
        ):
            return _opened(file, buffering)
        return _REAL(file, mode, buffering, encoding, errors, newline, closefd, opener)


def _opened(file: Any, buffering: int) -> Any:
    """Open a file in the steps of the real `open`."""
    tally = current.tally
    start = perf_counter()
    raw: Any = _ClockedFile(os.fspath(file), "r")
    try:
        if buffering < 0:
            buffering = raw._blksize
            if sys.version_info >= (3, 14):
                buffering = max(min(buffering, 8 << 20), io.DEFAULT_BUFFER_SIZE)
        opened = io.BufferedReader(raw, buffering)
    except BaseException:
        raw.close()
        raise
    if tally is not None:
        tally.add_read(start, perf_counter(), 0, 0)
    return opened


recording_open = _Open()
