"""Record reads through fsspec as the stage `read`, and each request that they make of the store.

These calls are recorded: opening a file for reading (as time only), reads of fsspec's buffered
files, ``cat_file``, ``get_file``, and what an asynchronous file system does for a synchronous
caller. A read from the file's own cache makes no request.

Local files are recorded by `file_reads`. Files that are neither buffered by fsspec, nor local, nor
in memory (SFTP, HDFS) are recorded when they are opened, not when they are read.

Each request is also noted by itself, with its size and time: a fetch of a whole object or a range,
by a file or by an asynchronous file system.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterator
from functools import partial
from typing import Any

from pipeprof.measure.patches.file_reads import recording_open
from pipeprof.measure.patches.recorded_calls import (
    counted_fetch,
    downloaded_nbytes,
    noted_coroutine,
    recorded_open,
    recorded_read,
)
from pipeprof.measure.patches.replacing import (
    Patches,
    Replacement,
    Wrappers,
    wrapped_methods,
)

_FILE_SYSTEM_METHODS: Wrappers = {
    "open": recorded_open,
    "cat_file": partial(recorded_read, one_request=True),
    "get_file": partial(recorded_read, nbytes=downloaded_nbytes, one_request=True),
}
_FILE_METHODS: Wrappers = {
    "read": partial(recorded_read, fewest=0, cached=True),
    "_fetch_range": counted_fetch,
    "_fetch_all": counted_fetch,
}
_COROUTINE_METHODS: Wrappers = {
    "_cat_file": noted_coroutine,
    "_get_file": partial(noted_coroutine, nbytes=downloaded_nbytes),
}
_AWAITED_COROUTINES: Wrappers = {
    "_cat": recorded_read,
    "_cat_file": recorded_read,
    "_cat_ranges": recorded_read,
    "_get": partial(recorded_read, nbytes=downloaded_nbytes),
    "_get_file": partial(recorded_read, nbytes=downloaded_nbytes),
}


def _of_spec(module: Any) -> Iterator[Replacement]:
    yield from wrapped_methods(module.AbstractFileSystem, _FILE_SYSTEM_METHODS)
    yield from wrapped_methods(module.AbstractBufferedFile, _FILE_METHODS)


def _of_asyn(module: Any) -> Iterator[Replacement]:
    """Wrap ``sync``, in which all synchronous callers wait for coroutines, and the coroutines."""
    sync = module.sync
    wrapped = {name: wrapper(sync) for name, wrapper in _AWAITED_COROUTINES.items()}

    @functools.wraps(sync)
    def waiting(loop: Any, func: Any, *arguments: Any, **options: Any) -> Any:
        wait = wrapped.get(getattr(func, "__name__", ""), sync)
        return wait(loop, func, *arguments, **options)

    yield module, "sync", waiting
    methods = _COROUTINE_METHODS
    yield from wrapped_methods(module.AsyncFileSystem, methods, inspect.iscoroutinefunction)


def _of_memory(module: Any) -> Iterator[Replacement]:
    for name in ("read", "read1", "readinto", "readline"):
        method = getattr(module.MemoryFile, name)
        yield module.MemoryFile, name, recorded_read(method, one_request=True)


def _of_local(module: Any) -> Iterator[Replacement]:
    yield module, "open", recording_open  # it hides the builtin in this module


PATCHES: Patches = {
    "fsspec.spec": _of_spec,
    "fsspec.asyn": _of_asyn,
    "fsspec.implementations.memory": _of_memory,
    "fsspec.implementations.local": _of_local,
    "fsspec.implementations.cached": _of_local,
}
