"""Fetch the bytes that will be needed next, while a part of the data is decoded."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from time import perf_counter
from typing import Any

from pipeprof.formats.base import PREFETCH_DEPTH, ByteRange, ReadRequest
from pipeprof.measure.requests import reading
from pipeprof.measure.stage_timer import Tally, record_read, tallied
from pipeprof.storage import Buffer, ObjectInfo, Store

_SMALL_BYTES = 2**12
"""Below this size a request, such as one for a header, gives little to decode. The request after it
is fetched at the same time."""
_MOST_SPLITS_AHEAD = 2 * PREFETCH_DEPTH
"""Most splits whose first requests are known in advance, however small they are."""

_FORK_WAIT_S = 5.0
"""Most seconds that a fork waits for reads in flight."""
_in_flight = set[Future[Any]]()
"""Reads of all passes in this process, also of passes that were left."""

FirstRequest = tuple[ObjectInfo, ReadRequest | None]
"""The first request of a split's decoder; ``None`` where it is unknown."""
Fetch = tuple[ObjectInfo, tuple[ByteRange, ...]]
"""Ranges of an object to fetch in one read."""
Fetched = tuple[Sequence[Buffer], int, int]
"""The buffers, their bytes in all, and the number of requests made for them."""


class StoreReader:
    """Reads a store during one pass, in the thread that decodes, when bytes are asked for."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def begin_split(self) -> None:
        """Announce that the next reads belong to the next split."""

    def read(self, item: ObjectInfo, request: ReadRequest) -> Sequence[Buffer]:
        """Return the bytes of ``request``, recorded as stage `read`. Raises `StorageError`."""
        with reading():
            return self._store.read(item, request.ranges)

    def close(self) -> None:
        """End the pass, after which nothing more is read."""


class PrefetchingReader(StoreReader):
    """Reads in background threads, which fetch the next `PREFETCH_DEPTH` requests in advance. They
    do so concurrently, unless the store answers one request at a time. An error is raised when its
    bytes are asked for. Only the time in which decoding waits is recorded as stage `read`."""

    def __init__(self, store: Store, first_requests: Iterator[FirstRequest]) -> None:
        """Prepare a pass; ``first_requests`` has one entry for each split, in their order."""
        super().__init__(store)
        threads = 1 if store.one_at_a_time else PREFETCH_DEPTH
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="pipeprof-ahead")
        self._first_requests = first_requests
        self._started: deque[tuple[Fetch, Future[Fetched]]] = deque()
        self._planned: deque[Fetch] = deque()
        """Fetches that follow the started ones, in this order."""
        self._splits_ahead = 0
        """Splits whose first request was taken and that have not begun."""
        self._incomplete = True
        """Whether the last split considered will need more than its planned fetches."""

    def begin_split(self) -> None:
        self._splits_ahead -= 1
        if self._splits_ahead < 0:  # the first split, or one after damage that ended another early
            next(self._first_requests, None)
            self._splits_ahead, self._incomplete = 0, True
            self._cancel()

    def read(self, item: ObjectInfo, request: ReadRequest) -> Sequence[Buffer]:
        pending = self._take((item, request.ranges))
        if not self._splits_ahead:  # otherwise all fetches of this split are planned
            self._plan_following(item, request)
        self._fetch_ahead()
        start = perf_counter()
        with reading():
            buffers, size, requests = pending.result()
        record_read(start, perf_counter(), size, requests)
        return buffers

    def _take(self, fetch: Fetch) -> Future[Fetched]:
        """Return the read of ``fetch``, and drop all that was started or planned before it."""
        if fetch in self._planned or any(fetch == each for each, _ in self._started):
            while self._started:
                each, pending = self._started.popleft()
                if each == fetch:
                    return pending
                pending.cancel()  # the decoder found damage and never asked for it
            while self._planned.popleft() != fetch:
                pass
        return self._start(fetch)  # also for the rare row that ends far beyond its split

    def _plan_following(self, item: ObjectInfo, request: ReadRequest) -> None:
        """Plan the fetches that follow ``request`` in the current split."""
        known = [*(fetch for fetch, _ in self._started), *self._planned]
        self._planned += (fetch for fetch in _following(item, request) if fetch not in known)
        self._incomplete = len(request.prefetch) >= PREFETCH_DEPTH

    def _fetch_ahead(self) -> None:
        while self._large_started() < PREFETCH_DEPTH and self._plan_next_split():
            fetch = self._planned.popleft()
            self._started.append((fetch, self._start(fetch)))

    def _large_started(self) -> int:
        """Return how many started fetches are not small."""
        sizes = (sum(length for _, length in ranges) for (_, ranges), _ in self._started)
        return sum(size >= _SMALL_BYTES for size in sizes)

    def _plan_next_split(self) -> bool:
        """Plan the next splits' first fetches if none are planned; return whether any are."""
        while (
            not self._planned and not self._incomplete and self._splits_ahead < _MOST_SPLITS_AHEAD
        ):
            item, request = next(self._first_requests, (None, None))
            if item is None:
                return False
            self._splits_ahead += 1
            if request is not None:
                self._planned += ((item, request.ranges), *_following(item, request))
                self._incomplete = len(request.prefetch) >= PREFETCH_DEPTH
        return bool(self._planned)

    def _start(self, fetch: Fetch) -> Future[Fetched]:
        pending = self._threads.submit(_read, self._store, *fetch)
        _in_flight.add(pending)
        pending.add_done_callback(_in_flight.discard)
        return pending

    def _cancel(self) -> None:
        for _, pending in self._started:
            pending.cancel()
        self._started.clear()
        self._planned.clear()

    def close(self) -> None:
        self._cancel()
        self._threads.shutdown(wait=False, cancel_futures=True)  # current reads still finish


def _wait_before_fork() -> None:
    wait(tuple(_in_flight), _FORK_WAIT_S)


# a fork copies locks that other threads hold, but not the threads that would release them
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_wait_before_fork, after_in_child=_in_flight.clear)


def _following(item: ObjectInfo, request: ReadRequest) -> Iterator[Fetch]:
    return ((item, (each,)) for each in request.prefetch)


def _read(store: Store, item: ObjectInfo, ranges: tuple[ByteRange, ...]) -> Fetched:
    with tallied(Tally()) as tally:
        buffers = store.read(item, ranges)
    return buffers, tally.bytes, tally.requests
