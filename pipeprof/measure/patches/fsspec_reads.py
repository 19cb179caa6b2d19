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
import logging
from collections.abc import Callable
from functools import partial
from types import FunctionType, ModuleType
from typing import Any

from pipeprof.log import suppress_and_log
from pipeprof.measure.import_hook import Cancel, when_imported
from pipeprof.measure.patches.file_reads import recording_open
from pipeprof.measure.patches.recorded_calls import (
    counted_fetch,
    downloaded_nbytes,
    noted_coroutine,
    recorded_open,
    recorded_read,
)

_log = logging.getLogger(__name__)

_ABSENT = object()
_replaced: list[tuple[Any, str, object, object]] = []
"""Each patch: owner, attribute, the original or `_ABSENT`, the replacement."""
_import_hooks: list[Cancel] = []
"""Functions that cancel the hooks on parts of fsspec that are not imported yet."""


def patch_fsspec() -> None:
    """Record reads from now on, also through parts of fsspec that are imported later."""
    _import_hooks.extend(when_imported(name, _patch_module) for name in _PATCHES)


def restore_fsspec() -> None:
    """Restore all originals, except where another library has replaced our patch since."""
    while _import_hooks:
        _import_hooks.pop()()
    while _replaced:
        owner, name, original, ours = _replaced.pop()
        if vars(owner).get(name) is not ours:
            continue
        if original is _ABSENT:
            delattr(owner, name)
        else:
            setattr(owner, name, original)


def _replace(owner: Any, name: str, value: object) -> None:
    _replaced.append((owner, name, vars(owner).get(name, _ABSENT), value))
    setattr(owner, name, value)


Wrappers = dict[str, Callable[[Any], Any]]
"""A wrapper for each method, by its name."""

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


def _patch_spec(module: Any) -> None:
    _patch_classes(module.AbstractFileSystem, _FILE_SYSTEM_METHODS)
    _patch_classes(module.AbstractBufferedFile, _FILE_METHODS)


def _is_synchronous(method: Any) -> bool:
    return not inspect.iscoroutinefunction(method)


def _patch_classes(
    root: Any, wrappers: Wrappers, fits: Callable[[Any], bool] = _is_synchronous
) -> None:
    """Wrap the methods of ``root`` and its subclasses, future ones included, where ``fits``."""

    def patch(member: type) -> None:
        for name, wrapper in wrappers.items():
            method = vars(member).get(name)
            if isinstance(method, FunctionType) and fits(method):
                _replace(member, name, wrapper(method))

    def patch_new(member: Any, /, **options: Any) -> None:
        super(root, member).__init_subclass__(**options)
        patch(member)

    for member in _with_subclasses(root):
        patch(member)
    _replace(root, "__init_subclass__", classmethod(patch_new))


def _with_subclasses(root: type) -> set[type]:
    return {root}.union(*map(_with_subclasses, root.__subclasses__()))


def _patch_asyn(module: Any) -> None:
    """Wrap ``sync``, in which all synchronous callers wait for coroutines, and the coroutines."""
    sync = module.sync
    wrapped = {name: wrapper(sync) for name, wrapper in _AWAITED_COROUTINES.items()}

    @functools.wraps(sync)
    def waiting(loop: Any, func: Any, *arguments: Any, **options: Any) -> Any:
        wait = wrapped.get(getattr(func, "__name__", ""), sync)
        return wait(loop, func, *arguments, **options)

    _replace(module, "sync", waiting)
    _patch_classes(module.AsyncFileSystem, _COROUTINE_METHODS, inspect.iscoroutinefunction)


def _patch_memory(module: Any) -> None:
    for name in ("read", "read1", "readinto", "readline"):
        method = getattr(module.MemoryFile, name)
        _replace(module.MemoryFile, name, recorded_read(method, one_request=True))


def _patch_local(module: Any) -> None:
    _replace(module, "open", recording_open)  # it hides the builtin in this module


_PATCHES: dict[str, Callable[[Any], None]] = {
    "fsspec.spec": _patch_spec,
    "fsspec.asyn": _patch_asyn,
    "fsspec.implementations.memory": _patch_memory,
    "fsspec.implementations.local": _patch_local,
    "fsspec.implementations.cached": _patch_local,
}


def _patch_module(module: ModuleType) -> None:
    with suppress_and_log(_log, f"reads through {module.__name__} are not recorded"):
        _PATCHES[module.__name__](module)
