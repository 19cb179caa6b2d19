"""Stretches of an open file, read in requests of bounded size, several of them at a time."""

from __future__ import annotations

import logging
import os
from collections import deque
from collections.abc import Sequence
from functools import cache
from math import nan
from time import perf_counter
from typing import NamedTuple

import pyarrow as pa

from pipeprof.errors import StorageError
from pipeprof.log import log_caught
from pipeprof.measure.requests import note_request
from pipeprof.model import ReadOptions
from pipeprof.storage.page_cache import forget, in_memory
from pipeprof.storage.threads import Helpers

_log = logging.getLogger(__name__)

ALIGNED = 4096
"""Direct reads begin and end at multiples of it."""
_CACHE_LINE = 64
"""Bytes."""
_ALONE_BYTES = 2**20
"""Up to here a read takes no other thread. Planning reads no more at a time, in the main process,
shortly before it forks its workers: they must find no thread there."""


class Request(NamedTuple):
    """One read call, or more when it is cut short."""

    offset: int
    view: memoryview
    wanted: int
    """Bytes of ``view`` that the file must have; a direct read may ask beyond its end."""
    direct: bool


class LocalReader:
    """Of one process, for one thread at a time."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._helpers = Helpers()

    def read(
        self, descriptor: int, path: str, ranges: Sequence[tuple[int, int]], direct: bool
    ) -> tuple[list[memoryview], int]:
        """The bytes of each (offset, length), and how many requests that took.

        Raises `OSError`, and `StorageError` when the file ends before.
        """
        spans = [_widened(*each) if direct else each for each in ranges]
        places, total = _places(spans)
        memory = _memory(total, ALIGNED if direct else _CACHE_LINE)
        alone = total <= _ALONE_BYTES or (not direct and _all_cached(descriptor, ranges))
        size = max(1, total) if alone else self._request_bytes(direct)
        requests: deque[Request] = deque()
        buffers = []
        for (offset, length), (start, reach), at in zip(ranges, spans, places, strict=True):
            inner = offset - start
            view = memory[at : at + reach]
            requests += (
                Request(
                    start + done, view[done : done + size], min(size, inner + length - done), direct
                )
                for done in range(0, inner + length, size)
            )
            buffers.append(view[inner : inner + length].toreadonly())
        count = len(requests)
        self._all(descriptor, path, requests, 1 if alone else self._options.queue_depth)
        if self._options.forget and not direct:
            for each in ranges:
                forget(descriptor, *_widened(*each))
        return buffers, count

    def _request_bytes(self, direct: bool) -> int:
        least = max(1, self._options.request_bytes)
        return _widened(0, least)[1] if direct else least

    def _all(self, descriptor: int, path: str, requests: deque[Request], depth: int) -> None:
        failed: list[tuple[int, Exception]] = []

        def work() -> None:
            while requests and not failed:
                try:
                    request = requests.popleft()
                except IndexError:  # another thread was quicker
                    return
                try:
                    _fill(descriptor, path, request)
                except Exception as error:
                    log_caught(_log, error, "a request of a local read failed")
                    failed.append((request.offset, error))

        beside = min(depth, len(requests)) - 1
        if beside > 0:
            self._helpers.beside(work, beside)
        else:
            work()
        if failed:
            raise min(failed, key=lambda each: each[0])[1].with_traceback(None)


def _places(spans: Sequence[tuple[int, int]]) -> tuple[list[int], int]:
    """Where each (offset, length) begins in one piece of memory, and how long that must be.

    A byte is as far into a cache line there as in the file: the kernel's copy is then up to five
    times as fast.
    """
    places, end = [], 0
    for offset, length in spans:
        places.append(end + (offset - end) % _CACHE_LINE)
        end = places[-1] + length
    return places, end


def _memory(size: int, alignment: int) -> memoryview:
    """``size`` writable bytes of any content, freed when nothing refers to them."""
    buffer = pa.allocate_buffer(size + alignment - 1, _pool())
    start = -buffer.address % alignment
    return memoryview(buffer).cast("B")[start : start + size]


@cache
def _pool() -> pa.MemoryPool:
    """The pool of Arrow that takes memory again without returning it to the kernel first, which
    would clear each page: that can take longer than copying the file's bytes into it."""
    try:
        return pa.mimalloc_memory_pool()
    except NotImplementedError:
        return pa.default_memory_pool()


def _all_cached(descriptor: int, ranges: Sequence[tuple[int, int]]) -> bool:
    """What is in memory is copied by one thread in one call as fast as by several, for less."""
    return all(in_memory(descriptor, *each) for each in ranges if each[1])


def _widened(offset: int, length: int) -> tuple[int, int]:
    """(offset, length) of the pages that hold any of it."""
    start = offset // ALIGNED * ALIGNED
    return start, -(-(offset + length) // ALIGNED) * ALIGNED - start


def _fill(descriptor: int, path: str, request: Request) -> None:
    """Into its view. One call gives at most 2 GiB, and may be cut short by a signal or a network
    mount; a direct one that is cut short within a page has met the file's end."""
    offset, view, wanted, direct = request
    got = 0
    while True:
        start_s = perf_counter()
        count = os.preadv(descriptor, [view[got:]], offset + got)
        got += count
        if count:
            note_request(start_s, nan, perf_counter(), min(count, wanted))
        if got >= wanted:
            return
        if not count or (direct and count % ALIGNED):
            raise StorageError(
                f"{path} ended at byte {offset + got:,} where {offset + wanted:,} were "
                "expected: it was cut short or replaced since it was listed."
            )
