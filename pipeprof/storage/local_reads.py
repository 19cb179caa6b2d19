"""Read byte ranges of an open file in requests of bounded size, several at a time."""

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
from pipeprof.storage.threads import HelperThreads

_log = logging.getLogger(__name__)

ALIGNMENT = 4096
"""Direct reads begin and end at multiples of this many bytes."""
_CACHE_LINE = 64
"""Bytes."""
_SMALL_READ_BYTES = 2**20
"""The largest read that never uses another thread. Planning stays below it, because it runs
shortly before workers are forked, and no other thread may exist then."""


class Request(NamedTuple):
    """One read call, or several when a call returns fewer bytes than asked for."""

    offset: int
    view: memoryview
    """Where the bytes go."""
    needed: int
    """How many bytes of ``view`` the file must have; a direct read may ask beyond its end."""
    direct: bool


class LocalReader:
    """Reads in one process, for one thread at a time."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._helpers = HelperThreads()

    def read(
        self, descriptor: int, path: str, ranges: Sequence[tuple[int, int]], direct: bool
    ) -> tuple[list[memoryview], int]:
        """Return the bytes of each (offset, length), and the number of requests. Raises `OSError`,
        and `StorageError` when the file is too short."""
        spans = [_whole_pages(*each) if direct else each for each in ranges]
        places, total = _places(spans)
        memory = _allocate(total, ALIGNMENT if direct else _CACHE_LINE)
        single = total <= _SMALL_READ_BYTES or (not direct and _all_cached(descriptor, ranges))
        size = max(1, total) if single else self._request_bytes(direct)
        requests: deque[Request] = deque()
        buffers = []
        for (offset, length), (start, span), place in zip(ranges, spans, places, strict=True):
            view = memory[place : place + span]
            before = offset - start  # bytes of the first page that lie before the range
            needed = before + length
            requests += (
                Request(start + at, view[at : at + size], min(size, needed - at), direct)
                for at in range(0, needed, size)
            )
            buffers.append(view[before:needed].toreadonly())
        count = len(requests)
        self._read_all(descriptor, path, requests, 1 if single else self._options.queue_depth)
        if self._options.forget and not direct:
            for each in ranges:
                forget(descriptor, *_whole_pages(*each))
        return buffers, count

    def _request_bytes(self, direct: bool) -> int:
        least = max(1, self._options.request_bytes)
        return _whole_pages(0, least)[1] if direct else least

    def _read_all(self, descriptor: int, path: str, requests: deque[Request], depth: int) -> None:
        failed: list[tuple[int, Exception]] = []

        def work() -> None:
            while requests and not failed:
                try:
                    request = requests.popleft()
                except IndexError:  # another thread took the last one
                    return
                try:
                    _fill(descriptor, path, request)
                except Exception as error:
                    log_caught(_log, error, "a request of a local read failed")
                    failed.append((request.offset, error))

        self._helpers.run(work, max(0, min(depth, len(requests)) - 1))
        if failed:
            raise min(failed, key=lambda each: each[0])[1].with_traceback(None)


def _places(spans: Sequence[tuple[int, int]]) -> tuple[list[int], int]:
    """Return where each (offset, length) begins in one piece of memory, and how long that must be.

    A byte lies as far into a cache line there as in the file: the kernel then copies
    several times as fast.
    """
    places, end = [], 0
    for offset, length in spans:
        places.append(end + (offset - end) % _CACHE_LINE)
        end = places[-1] + length
    return places, end


def _allocate(size: int, alignment: int) -> memoryview:
    """Return ``size`` uninitialised bytes, which are freed when nothing refers to them."""
    buffer = pa.allocate_buffer(size + alignment - 1, _pool())
    start = -buffer.address % alignment
    return memoryview(buffer).cast("B")[start : start + size]


@cache
def _pool() -> pa.MemoryPool:
    """Return the pool of Arrow that reuses memory without returning it to the kernel. The kernel
    would clear each page, which can take longer than copying the file's bytes into it."""
    try:
        return pa.mimalloc_memory_pool()
    except NotImplementedError:
        return pa.default_memory_pool()


def _all_cached(descriptor: int, ranges: Sequence[tuple[int, int]]) -> bool:
    """Return whether all ranges are in memory, where one thread copies as fast as several."""
    return all(in_memory(descriptor, *each) for each in ranges if each[1])


def _whole_pages(offset: int, length: int) -> tuple[int, int]:
    """Return the (offset, length) of all pages that hold any byte of the range."""
    start = offset // ALIGNMENT * ALIGNMENT
    return start, -(-(offset + length) // ALIGNMENT) * ALIGNMENT - start


def _fill(descriptor: int, path: str, request: Request) -> None:
    """Read the bytes of ``request`` into its view.

    A call returns at most 2 GiB, and fewer after a signal or on a network mount. A direct read
    that ends within a page has reached the end of the file.
    """
    offset, view, needed, direct = request
    got = 0
    while True:
        start_s = perf_counter()
        count = os.preadv(descriptor, [view[got:]], offset + got)
        got += count
        if count:
            note_request(start_s, nan, perf_counter(), min(count, needed))
        if got >= needed:
            return
        if not count or (direct and count % ALIGNMENT):
            raise StorageError(
                f"{path} ended at byte {offset + got:,} where {offset + needed:,} were "
                "expected: it was cut short or replaced since it was listed."
            )
