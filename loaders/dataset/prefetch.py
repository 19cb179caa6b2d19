"""While a part is decoded, the bytes that will be wanted next are fetched."""

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

_SMALL = 2**12
"""Bytes of a request with hardly anything to decode, as a header: what follows comes beside it."""
_MOST_SPLITS = 2 * PREFETCH_DEPTH
"""Looked at before their turn, however small they are."""

_PATIENCE_S = 5.0
"""That a fork waits for reads under way."""
_under_way = set[Future[Any]]()
"""Of all passes in this process, those too that were left."""

First = tuple[ObjectInfo, ReadRequest | None]
"""What the decoder of a split will want first; ``None``: it cannot say."""
Wanted = tuple[ObjectInfo, tuple[ByteRange, ...]]
Fetched = tuple[Sequence[Buffer], int, int]
"""The bytes, how many they are, and the requests made for them."""


class Reads:
    """Of one pass over a store: one after another, by the thread that decodes."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def begin(self) -> None:
        """What is read from now on is of the next split."""

    def read(self, item: ObjectInfo, request: ReadRequest) -> Sequence[Buffer]:
        """Recorded as stage `read`. Raises `StorageError`."""
        with reading():
            return self._store.read(item, request.ranges)

    def close(self) -> None:
        """Nothing more will be read."""


class ReadsAhead(Reads):
    """Reads in threads of its own, which continue with the next `PREFETCH_DEPTH` requests: all at
    once, unless the store answers one at a time.

    What could not be read is reported when it is asked for. Only the time in which nobody decodes,
    because the bytes are not there yet, is the stage `read`.
    """

    def __init__(self, store: Store, firsts: Iterator[First]) -> None:
        """``firsts``: of all splits of the pass, in their order."""
        super().__init__(store)
        threads = 1 if store.one_at_a_time else PREFETCH_DEPTH
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="pipeprof-ahead")
        self._firsts = firsts
        self._coming: deque[tuple[Wanted, Future[Fetched]]] = deque()
        self._known: deque[Wanted] = deque()
        """Will be asked for after what is coming, in this order."""
        self._ahead = 0
        """Splits that were looked at and are not begun."""
        self._more = True
        """Whether the last split that was looked at, or begun, will want more than is known."""

    def begin(self) -> None:
        self._ahead -= 1
        if self._ahead < 0:  # the first, or the one before was damaged and left at once
            next(self._firsts, None)
            self._ahead, self._more = 0, True
            self._forget()

    def read(self, item: ObjectInfo, request: ReadRequest) -> Sequence[Buffer]:
        coming = self._taken((item, request.ranges))
        if not self._ahead:  # else all that this split will want is known
            self._learn(item, request)
        self._fetch_ahead()
        start = perf_counter()
        with reading():
            buffers, size, requests = coming.result()
        record_read(start, perf_counter(), size, requests)
        return buffers

    def _taken(self, wanted: Wanted) -> Future[Fetched]:
        if wanted in self._known or any(wanted == those for those, _ in self._coming):
            while self._coming:
                those, coming = self._coming.popleft()
                if those == wanted:
                    return coming
                coming.cancel()  # a decoder that met damage never asked for it
            while self._known.popleft() != wanted:
                pass
        return self._fetch(wanted)  # also the rare row that ends far beyond its split

    def _learn(self, item: ObjectInfo, request: ReadRequest) -> None:
        """What follows ``request`` in the split that is read now."""
        line = [*(wanted for wanted, _ in self._coming), *self._known]
        self._known += (wanted for wanted in _then(item, request) if wanted not in line)
        self._more = len(request.prefetch) >= PREFETCH_DEPTH

    def _fetch_ahead(self) -> None:
        while self._large() < PREFETCH_DEPTH and self._look():
            wanted = self._known.popleft()
            self._coming.append((wanted, self._fetch(wanted)))

    def _large(self) -> int:
        sizes = (sum(length for _, length in ranges) for (_, ranges), _ in self._coming)
        return sum(size >= _SMALL for size in sizes)

    def _look(self) -> bool:
        """Whether anything is known to be wanted; where necessary, by a look at the next splits."""
        while not self._known and not self._more and self._ahead < _MOST_SPLITS:
            item, request = next(self._firsts, (None, None))
            if item is None:
                return False
            self._ahead += 1
            if request is not None:
                self._known += ((item, request.ranges), *_then(item, request))
                self._more = len(request.prefetch) >= PREFETCH_DEPTH
        return bool(self._known)

    def _fetch(self, wanted: Wanted) -> Future[Fetched]:
        coming = self._threads.submit(_read, self._store, *wanted)
        _under_way.add(coming)
        coming.add_done_callback(_under_way.discard)
        return coming

    def _forget(self) -> None:
        for _, coming in self._coming:
            coming.cancel()
        self._coming.clear()
        self._known.clear()

    def close(self) -> None:
        self._forget()
        self._threads.shutdown(wait=False, cancel_futures=True)  # they end with what they read now


def _let_them_end() -> None:
    wait(tuple(_under_way), _PATIENCE_S)


# a fork copies the locks that another thread holds, and nobody who would let go of them
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_let_them_end, after_in_child=_under_way.clear)


def _then(item: ObjectInfo, request: ReadRequest) -> Iterator[Wanted]:
    return ((item, (following,)) for following in request.prefetch)


def _read(store: Store, item: ObjectInfo, ranges: tuple[ByteRange, ...]) -> Fetched:
    with tallied(Tally()) as tally:
        buffers = store.read(item, ranges)
    return buffers, tally.bytes, tally.requests
