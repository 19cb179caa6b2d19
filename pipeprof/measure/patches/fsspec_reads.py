"""Let what is read through fsspec count as stage `read`.

A read within a read counts once, at the outermost: its whole time, the bytes that its caller got,
and the requests made of the store. Seen are: opening for reading (as time), reads of fsspec's
buffered files, ``cat_file``, ``get_file``, and what an asynchronous file system does for a
synchronous caller. A read that the file's own cache serves makes no request. Local files are
clocked as `file_reads` does it. Files that are neither buffered by fsspec, nor
local, nor in memory (SFTP, HDFS) are seen when they are opened, not when they are read.

Each request is noted by itself too, with its size and its time: what a file fetches, a whole
object or a range, and what an asynchronous file system asks for beside each other.
"""

from __future__ import annotations

import functools
import inspect
import logging
import os
import threading
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from functools import partial
from math import nan
from time import perf_counter
from types import FunctionType, ModuleType
from typing import Any

from pipeprof.log import log_caught, suppress_and_log
from pipeprof.measure.import_hook import Forget, when_imported
from pipeprof.measure.patches.file_reads import watched_open
from pipeprof.measure.requests import StoreTime, note_request
from pipeprof.measure.stage_timer import Tally, current

_log = logging.getLogger(__name__)

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
    noting = False
    """Each is to be noted as a request."""
    tally: Tally | None = None
    """Each is what this batch waits for its store in."""


_fetches = _Fetches()
_asking: ContextVar[bool] = ContextVar("pipeprof.asking", default=False)
"""The same of coroutines, which run in fsspec's own thread but in their caller's context."""


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


def timed(
    function: Any,
    fewest: int = 1,
    weigh: Weigh = _given,
    one_request: bool = False,
    cached: bool = False,
) -> Any:
    """``function``, each call of it a read: of as many requests as files make in it, but at least
    ``fewest``, or one for each part of its result. ``one_request``: it is noted as one, if no file
    makes any in it. ``cached``: it waits for its store only where a file makes one."""

    @functools.wraps(function)
    def reading(*arguments: Any, **options: Any) -> Any:
        tally = current.tally
        if tally is None:
            return function(*arguments, **options)
        current.tally = None  # what is read within belongs to this read
        result, before, noting = _ABSENT, _fetches.count, tally.noting
        _fetches.noting, asked = noting, _asking.set(noting)
        _fetches.tally = tally if noting and cached else None
        store_time = StoreTime(tally) if noting and not cached else None
        start = perf_counter()
        try:
            result = function(*arguments, **options)
            return result
        finally:
            end = perf_counter()
            current.tally = tally
            _fetches.noting, _fetches.tally = False, None
            _asking.reset(asked)
            if store_time is not None:
                store_time.end()
            requests = _fetches.count - before
            if requests < fewest:
                requests = len(result) if isinstance(result, (list, dict)) else fewest
            try:
                size = weigh(result, arguments) if result is not _ABSENT else 0
            except Exception as error:
                log_caught(_log, error, "the bytes of a read are not counted")
                size = 0  # a file system may give and take anything
            if noting and one_request and _fetches.count == before:
                note_request(start, nan, end, size, failed=result is _ABSENT)
            tally.add_read(start, end, size, requests)

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
        if not _fetches.noting:
            return function(*arguments, **options)
        store_time = StoreTime(_fetches.tally) if _fetches.tally is not None else None
        result, start = _ABSENT, perf_counter()
        try:
            result = function(*arguments, **options)
            return result
        finally:
            end = perf_counter()
            if store_time is not None:
                store_time.end()
            # of a whole file, it may be the file that keeps what came
            size = _given(result) or int(getattr(arguments[0], "size", 0) or 0)
            note_request(start, nan, end, size, failed=result is _ABSENT)

    return fetching


def _noted(function: Any, weigh: Weigh = _given) -> Any:
    """A coroutine function, each call of it a request."""

    @functools.wraps(function)
    async def asking(*arguments: Any, **options: Any) -> Any:
        if not _asking.get():
            return await function(*arguments, **options)
        asked = _asking.set(False)  # what it awaits is this request
        result, size, start = _ABSENT, 0, perf_counter()
        try:
            result = await function(*arguments, **options)
            return result
        finally:
            end = perf_counter()
            _asking.reset(asked)
            with suppress_and_log(_log, "the bytes of a request are not counted"):
                size = weigh(result, arguments)
            note_request(start, nan, end, size, failed=result is _ABSENT)

    return asking


Points = dict[str, Callable[[Any], Any]]

_OF_FILE_SYSTEMS: Points = {
    "open": _timed_open,
    "cat_file": partial(timed, one_request=True),
    "get_file": partial(timed, weigh=_landed, one_request=True),
}
_OF_FILES: Points = {
    "read": partial(timed, fewest=0, cached=True),
    "_fetch_range": _counted,
    "_fetch_all": _counted,
}
_ASYNCHRONOUS: Points = {
    "_cat_file": _noted,
    "_get_file": partial(_noted, weigh=_landed),
}
_AWAITED: Points = {
    "_cat": timed,
    "_cat_file": timed,
    "_cat_ranges": timed,
    "_get": partial(timed, weigh=_landed),
    "_get_file": partial(timed, weigh=_landed),
}


def _watch_spec(module: Any) -> None:
    _watch_family(module.AbstractFileSystem, _OF_FILE_SYSTEMS)
    _watch_family(module.AbstractBufferedFile, _OF_FILES)


def _plain(method: Any) -> bool:
    return not inspect.iscoroutinefunction(method)


def _watch_family(root: Any, points: Points, fits: Callable[[Any], bool] = _plain) -> None:
    """Time the methods of ``root`` and of all its subclasses, those yet to come included."""

    def watch(member: type) -> None:
        for name, timer in points.items():
            method = vars(member).get(name)
            if isinstance(method, FunctionType) and fits(method):
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
    waits = {name: timer(sync) for name, timer in _AWAITED.items()}

    @functools.wraps(sync)
    def waiting(loop: Any, func: Any, *arguments: Any, **options: Any) -> Any:
        wait = waits.get(getattr(func, "__name__", ""), sync)
        return wait(loop, func, *arguments, **options)

    _replace(module, "sync", waiting)
    _watch_family(module.AsyncFileSystem, _ASYNCHRONOUS, inspect.iscoroutinefunction)


def _watch_memory(module: Any) -> None:
    for name in ("read", "read1", "readinto", "readline"):
        method = getattr(module.MemoryFile, name)
        _replace(module.MemoryFile, name, timed(method, one_request=True))


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
    with suppress_and_log(_log, f"reads through {module.__name__} are not recorded"):
        _POINTS[module.__name__](module)
