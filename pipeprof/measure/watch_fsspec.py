"""Let what is read through fsspec count as stage `read`.

A read within a read counts once, at the outermost: its whole time, the bytes that its caller got,
and the requests made of the store. Seen are: opening for reading (as time), reads of fsspec's
buffered files, ``cat_file``, ``get_file``, and what an asynchronous file system does for a
synchronous caller. A read that the file's own cache serves makes no request. Local files are
clocked as `pipeprof.measure.watch_open` does it. Files that are neither buffered by fsspec, nor
local, nor in memory (SFTP, HDFS) are seen when they are opened, not when they are read.
"""

from __future__ import annotations

import functools
import inspect
import os
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from time import perf_counter
from types import FunctionType, ModuleType
from typing import Any

from pipeprof.measure.on_import import Forget, when_imported
from pipeprof.measure.spans import current
from pipeprof.measure.watch_open import add_read, watched_open

_ABSENT = object()
_replaced: list[tuple[Any, str, object, object]] = []
"""Owner, attribute, what was there or `_ABSENT`, what is there now."""
_awaited: list[Forget] = []
"""Calls off the wait for parts of fsspec that are not imported yet."""


def watch_fsspec() -> None:
    """Record reads from now on, also through parts of fsspec that are imported later."""
    _awaited.extend(when_imported(name, _watch) for name in _POINTS)


def unwatch_fsspec() -> None:
    """Put back exactly what was there, unless somebody else has replaced it since."""
    while _awaited:
        _awaited.pop()()
    while _replaced:
        owner, name, before, ours = _replaced.pop()
        if vars(owner).get(name) is not ours:
            continue
        if before is _ABSENT:
            delattr(owner, name)
        else:
            setattr(owner, name, before)


def _replace(owner: Any, name: str, value: object) -> None:
    _replaced.append((owner, name, vars(owner).get(name, _ABSENT), value))
    setattr(owner, name, value)


class _Fetches(threading.local):
    count = 0
    """By fsspec's files, in this thread, ever."""


_fetches = _Fetches()


Weigh = Callable[[Any, Sequence[Any]], int]
"""The bytes that a call has read, of its result and its positional arguments."""


def _given(result: Any, _: Sequence[Any] = ()) -> int:
    """To the caller."""
    if isinstance(result, bytes):
        return len(result)
    if isinstance(result, int):
        return result  # of ``readinto``
    if isinstance(result, dict):
        result = list(result.values())
    if isinstance(result, list):
        return sum(map(_given, result))
    return memoryview(result).nbytes if isinstance(result, (bytearray, memoryview)) else 0


def _landed(_: Any, arguments: Sequence[Any]) -> int:
    """Bytes of the local files that a call of (…, remote, local) has made."""
    paths = arguments[-1] if isinstance(arguments[-1], list) else [arguments[-1]]
    return sum(os.path.getsize(path) for path in paths if os.path.isfile(path))


def timed(function: Any, fewest: int = 1, weigh: Weigh = _given) -> Any:
    """``function``, each call of it a read: of as many requests as files make in it, but at least
    ``fewest``, or one for each part of its result."""

    @functools.wraps(function)
    def reading(*arguments: Any, **options: Any) -> Any:
        tally = current.tally
        if tally is None:
            return function(*arguments, **options)
        current.tally = None  # what is read within belongs to this read
        result, before = _ABSENT, _fetches.count
        start = perf_counter()
        try:
            result = function(*arguments, **options)
            return result
        finally:
            end = perf_counter()
            current.tally = tally
            requests = _fetches.count - before
            if requests < fewest:
                requests = len(result) if isinstance(result, (list, dict)) else fewest
            try:
                size = weigh(result, arguments) if result is not _ABSENT else 0
            except Exception:
                size = 0  # a file system may give and take anything
            add_read(tally, start, end, size, requests)

    return reading


def _timed_open(function: Any) -> Any:
    timed_function = timed(function, fewest=0)

    @functools.wraps(function)
    def opening(*arguments: Any, **options: Any) -> Any:
        mode = arguments[2] if len(arguments) > 2 else options.get("mode", "rb")
        return (timed_function if "r" in str(mode) else function)(*arguments, **options)

    return opening


def _counted(function: Any) -> Any:
    @functools.wraps(function)
    def fetching(*arguments: Any, **options: Any) -> Any:
        _fetches.count += 1
        return function(*arguments, **options)

    return fetching


Points = dict[str, Callable[[Any], Any]]

_OF_FILE_SYSTEMS: Points = {
    "open": _timed_open,
    "cat_file": timed,
    "get_file": partial(timed, weigh=_landed),
}
_OF_FILES: Points = {
    "read": partial(timed, fewest=0),
    "_fetch_range": _counted,
    "_fetch_all": _counted,
}
_OF_COROUTINES: Points = {
    "_cat": timed,
    "_cat_file": timed,
    "_cat_ranges": timed,
    "_get": partial(timed, weigh=_landed),
    "_get_file": partial(timed, weigh=_landed),
}


def _watch_spec(module: Any) -> None:
    _watch_family(module.AbstractFileSystem, _OF_FILE_SYSTEMS)
    _watch_family(module.AbstractBufferedFile, _OF_FILES)


def _watch_family(root: Any, points: Points) -> None:
    """Time the methods of ``root`` and of all its subclasses, those yet to come included."""

    def watch(member: type) -> None:
        for name, timer in points.items():
            method = vars(member).get(name)
            if isinstance(method, FunctionType) and not inspect.iscoroutinefunction(method):
                _replace(member, name, timer(method))

    def watch_new(member: Any, /, **options: Any) -> None:
        super(root, member).__init_subclass__(**options)
        watch(member)

    for member in _family(root):
        watch(member)
    _replace(root, "__init_subclass__", classmethod(watch_new))


def _family(root: type) -> set[type]:
    return {root}.union(*map(_family, root.__subclasses__()))


def _watch_asyn(module: Any) -> None:
    """The one place where a synchronous caller waits for a coroutine."""
    sync = module.sync
    waits = {name: timer(sync) for name, timer in _OF_COROUTINES.items()}

    @functools.wraps(sync)
    def waiting(loop: Any, func: Any, *arguments: Any, **options: Any) -> Any:
        wait = waits.get(getattr(func, "__name__", ""), sync)
        return wait(loop, func, *arguments, **options)

    _replace(module, "sync", waiting)


def _watch_memory(module: Any) -> None:
    for name in ("read", "read1", "readinto", "readline"):
        _replace(module.MemoryFile, name, timed(getattr(module.MemoryFile, name)))


def _watch_local(module: Any) -> None:
    _replace(module, "open", watched_open)  # before the builtin


_POINTS: dict[str, Callable[[Any], None]] = {
    "fsspec.spec": _watch_spec,
    "fsspec.asyn": _watch_asyn,
    "fsspec.implementations.memory": _watch_memory,
    "fsspec.implementations.local": _watch_local,
    "fsspec.implementations.cached": _watch_local,
}


def _watch(module: ModuleType) -> None:
    with suppress(Exception):  # an fsspec that we do not know goes unseen
        _POINTS[module.__name__](module)
