"""Kernels: functions that numba compiles, for what NumPy and Arrow do only slowly.

numba is an optional package (`pip install 'pipeprof[fast]'`), since it pins NumPy. A module of
kernels imports it, and nobody imports such a module but `kernels`. Without numba, or where it fails
for whatever reason, a reader goes the way that it has without kernels, to the same rows and errors.

A kernel runs without Python's lock, raises nothing and checks no index: whoever writes one holds
every index within its buffer, as the bytes may be anybody's.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])

SWITCH = "PIPEPROF_COMPILED"
"""Set to 0 in the environment, it turns kernels off."""


def kernels(module: str) -> ModuleType | None:
    """The module of this name, compiled; ``None``: there is no numba here, or it is turned off.

    The first call on a machine compiles, which takes seconds, and numba keeps the result on disk.
    Call it in the main process, so that workers that are forked inherit it.
    """
    return None if os.environ.get(SWITCH) == "0" else _loaded(module)


@cache
def _loaded(module: str) -> ModuleType | None:
    if sys.byteorder == "big":  # kernels read eight bytes as one number
        return None
    try:
        return import_module(module)
    except Exception:  # numba, LLVM, NumPy: their versions, the disk
        return None


def kernel(*signatures: str) -> Callable[[Function], Function]:
    """Compile a function for arguments of these types, when its module is imported; without any,
    as a part of the kernels that call it.

    ``"i8(u1[::1], i8)"`` takes an array of bytes that may be written into, and a number.
    """
    import numba

    njit: Callable[..., Any] = numba.njit
    options = {"nogil": True, "boundscheck": False, "error_model": "numpy"}

    def compiled(function: Function, keep: bool = True) -> Function:
        try:
            found = njit(cache=keep, forceinline=not signatures, **options)(function)
            if keep:
                _watch_parts(found, function.__module__)
            for signature in signatures:
                found.compile(signature)
        except (RuntimeError, OSError):  # there is no folder to keep it in
            if not keep:
                raise
            return compiled(function, keep=False)
        if signatures:
            found.disable_compile()
        kernel_of_numba: Function = found
        return kernel_of_numba

    return compiled


def _watch_parts(found: Any, module: str) -> None:
    """Numba compiles anew when the kernel's own file has changed; let it look at those of its parts
    too."""
    names, left = set[str](), [module]
    while left:
        name = left.pop()
        if name not in names:
            names.add(name)
            inside = vars(sys.modules[name]).values()
            parts = (getattr(value, "__module__", None) or "" for value in inside)
            left += [part for part in parts if part.startswith("pipeprof.formats.")]
    files = [Path(str(sys.modules[name].__file__)).stat() for name in sorted(names)]
    stamps = [(file.st_mtime, file.st_size) for file in files]
    with suppress(AttributeError):  # a later numba may keep its stamp elsewhere
        index = found._cache._cache_file
        index._source_stamp = (index._source_stamp, stamps)
