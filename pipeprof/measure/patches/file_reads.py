"""Python's `open`, giving files that record their reads as stage `read`.

They are of the types that `open` always gives; only the ``FileIO`` at the bottom is of a subclass,
which clocks its system calls. So bytes and requests are those of the system calls, what the buffer
reads ahead included, and opening counts as time. Anything but a plain binary file for reading, by
name and with a buffer, comes from the real `open`: without a buffer (as ``Path.read_bytes`` has it
from Python 3.14 on) its very type would differ, and a descriptor may be a pipe. Text files are
left out: a line of text would take 40 ns longer, which is a twentieth of parsing it, and more.

While a batch is made, opening takes some 1 µs longer than before and each system call 0.8 µs. A
short read that the buffer serves takes 25 ns longer, batch or not: Python has a shorter way for
its own ``FileIO``.
"""

from __future__ import annotations

import builtins
import functools
import io
import os
import sys
from inspect import isbuiltin
from time import perf_counter
from typing import Any

from pipeprof.measure.stage_timer import current

_REAL = io.open
_READING = ("rb", "br")
_NAMES = (str, bytes)


def watch_open() -> None:
    """From now on, in this process, `open` and `io.open` are `watched_open`."""
    if not (builtins.open is io.open is _REAL and isbuiltin(_REAL)):
        return  # somebody has replaced it, and may not expect to be replaced in turn
    if sys.flags.warn_default_encoding:
        return  # the warning would name our line, not the user's
    for owner, name in _holders():
        setattr(owner, name, watched_open)


def _holders() -> list[tuple[Any, str]]:
    """Who keeps `open`, under which name: some modules of Python have one of their own."""
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
    """What a buffered file reads from. The end of the file is no request."""

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
    """An object, since a function would become a method where a class says ``open = open``. It
    has the builtin's name, signature and text, and is pickled by name as that is."""

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
    """As the real `open` does it, step by step."""
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


watched_open = _Open()
