"""Wrap functions so that each call is recorded as the stage `read`, or noted as a request.

A call in a thread that is not making a batch is not recorded. Nested reads count once, as the
outermost: its time, the bytes that its caller received, and the requests made.
"""

from __future__ import annotations

import functools
import logging
import os
import threading
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from math import nan
from time import perf_counter
from typing import Any

from pipeprof.log import log_caught, suppress_and_log
from pipeprof.measure.requests import StoreTime, note_request
from pipeprof.measure.stage_timer import Tally, current

_log = logging.getLogger(__name__)

_ABSENT = object()


class _Fetches(threading.local):
    """State of this thread for the fetches of fsspec's files from their store."""

    count = 0
    """Fetches of this thread so far."""
    noted = False
    """Whether each fetch is noted as a request."""
    tally: Tally | None = None
    """The batch to which the time of each fetch is added, as a wait for the store."""


_fetches = _Fetches()
_noted_here: ContextVar[bool] = ContextVar("pipeprof.noted", default=False)
"""Whether coroutines note requests: they run in fsspec's thread, but in their caller's context."""


Nbytes = Callable[[Any, Sequence[Any]], int]
"""Returns the bytes that a call has read, from its result and its positional arguments."""


def _result_nbytes(result: Any, _: Sequence[Any] = ()) -> int:
    """Return the bytes that a call gave to its caller."""
    if isinstance(result, bytes):
        return len(result)
    if isinstance(result, int):
        return result  # of ``readinto``
    if isinstance(result, dict):
        result = list(result.values())
    if isinstance(result, list):
        return sum(map(_result_nbytes, result))
    return memoryview(result).nbytes if isinstance(result, (bytearray, memoryview)) else 0


def downloaded_nbytes(_: Any, arguments: Sequence[Any]) -> int:
    """Return the bytes of the local files that a call with (…, remote, local) has written."""
    paths = arguments[-1] if isinstance(arguments[-1], list) else [arguments[-1]]
    return sum(os.path.getsize(path) for path in paths if os.path.isfile(path))


def recorded_read(
    function: Any,
    fewest: int = 1,
    nbytes: Nbytes = _result_nbytes,
    one_request: bool = False,
    cached: bool = False,
) -> Any:
    """Wrap ``function`` so that each call is recorded as a read.

    Its requests are those that files make in it. Where these are fewer than ``fewest``, they are
    one for each item of its result, or ``fewest``. ``one_request`` notes the call as a request
    where no file makes one. A ``cached`` read waits for its store only in requests of files.
    """

    @functools.wraps(function)
    def reading(*arguments: Any, **options: Any) -> Any:
        tally = current.tally
        if tally is None:
            return function(*arguments, **options)
        current.tally = None  # nested reads belong to this one
        result, count_before, noted = _ABSENT, _fetches.count, tally.note_requests
        _fetches.noted, token = noted, _noted_here.set(noted)
        _fetches.tally = tally if noted and cached else None
        store_time = StoreTime(tally) if noted and not cached else None
        start = perf_counter()
        try:
            result = function(*arguments, **options)
            return result
        finally:
            end = perf_counter()
            current.tally = tally
            _fetches.noted, _fetches.tally = False, None
            _noted_here.reset(token)
            if store_time is not None:
                store_time.end()
            requests = _fetches.count - count_before
            if requests < fewest:
                requests = len(result) if isinstance(result, (list, dict)) else fewest
            try:
                size = nbytes(result, arguments) if result is not _ABSENT else 0
            except Exception as error:  # a file system may take and return anything
                log_caught(_log, error, "the bytes of a read are not counted")
                size = 0
            if noted and one_request and _fetches.count == count_before:
                note_request(start, nan, end, size, failed=result is _ABSENT)
            tally.add_read(start, end, size, requests)

    return reading


def recorded_open(function: Any) -> Any:
    """Wrap ``open`` of a file system so that opening for reading is recorded as a read."""
    read = recorded_read(function, fewest=0)

    @functools.wraps(function)
    def opening(*arguments: Any, **options: Any) -> Any:
        mode = arguments[2] if len(arguments) > 2 else options.get("mode", "rb")
        return (read if "r" in str(mode) else function)(*arguments, **options)

    return opening


def counted_fetch(function: Any) -> Any:
    """Wrap a method of a file that fetches from the store, so that each call is a request."""

    @functools.wraps(function)
    def fetching(*arguments: Any, **options: Any) -> Any:
        _fetches.count += 1
        if not _fetches.noted:
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
            # when it fetches all, the file itself may keep the bytes
            size = _result_nbytes(result) or int(getattr(arguments[0], "size", 0) or 0)
            note_request(start, nan, end, size, failed=result is _ABSENT)

    return fetching


def noted_coroutine(function: Any, nbytes: Nbytes = _result_nbytes) -> Any:
    """Wrap a coroutine function so that each call is noted as a request."""

    @functools.wraps(function)
    async def asking(*arguments: Any, **options: Any) -> Any:
        if not _noted_here.get():
            return await function(*arguments, **options)
        token = _noted_here.set(False)  # coroutines that it awaits belong to this request
        result, size, start = _ABSENT, 0, perf_counter()
        try:
            result = await function(*arguments, **options)
            return result
        finally:
            end = perf_counter()
            _noted_here.reset(token)
            with suppress_and_log(_log, "the bytes of a request are not counted"):
                size = nbytes(result, arguments)
            note_request(start, nan, end, size, failed=result is _ABSENT)

    return asking
