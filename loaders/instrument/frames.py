"""Tell whose code a frame runs."""

from __future__ import annotations

import linecache
import os
from collections.abc import Iterator
from types import FrameType
from typing import Any

_STANDARD_LIBRARY = os.path.dirname(os.__file__)
_OURS = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_MOST_FRAMES = 30


def within(file: str, folder: str) -> bool:
    return file.startswith(folder + os.sep)


def is_ours(file: str) -> bool:
    """Return whether ``file`` is part of pipeprof, or generated code."""
    return file.startswith("<") or within(file, _OURS)


def is_library(file: str) -> bool:
    """Return whether ``file`` is installed, and no code of the user's."""
    parts = file.split(os.sep)
    return "site-packages" in parts or "dist-packages" in parts or within(file, _STANDARD_LIBRARY)


def read_our_sources(frame: FrameType | None, *others: str) -> None:
    """Read the files of the frames from ``frame`` on that are ours, and ``others``. For an error
    that may come later, torch formats the stack in each worker. A forked one need not read them."""
    for each in others:
        linecache.getlines(each)
    while frame is not None and is_ours(frame.f_code.co_filename):
        linecache.getlines(frame.f_code.co_filename)
        frame = frame.f_back


def framework_arguments(frame: FrameType | None) -> Iterator[Any]:
    """Yield the arguments of library functions that called ``frame``, the innermost first."""
    for _ in range(_MOST_FRAMES):
        if frame is None:
            return
        code = frame.f_code
        if is_library(code.co_filename) and not is_ours(code.co_filename):
            values = frame.f_locals
            for name in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]:
                yield values.get(name)
        frame = frame.f_back
