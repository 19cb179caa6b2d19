"""While a part is decoded, the bytes that will be wanted next are fetched."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from time import perf_counter
from types import TracebackType

from pipeprof.formats.base import Need, Range
from pipeprof.measure.requests import reading
from pipeprof.measure.spans import Tally, record, tallied
from pipeprof.model import Span, Stage
from pipeprof.storage import Buffer, ObjectInfo, Store

_SMALL = 2**16
"""Bytes of a need with hardly anything to decode, as a header: what follows comes with it."""

Fetched = tuple[Sequence[Buffer], int, int]
"""The bytes, how many they are, and the requests made for them."""


class Reads:
    """Of one pass over a store: one after another, by the thread that decodes."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def read(self, item: ObjectInfo, need: Need) -> Sequence[Buffer]:
        """Recorded as stage `read`. Raises `StorageError`."""
        with reading():
            return self._store.read(item, need.ranges)

    def ahead(self, item: ObjectInfo, need: Need) -> None:
        """``need`` will be asked for, after all that was said before."""

    def __enter__(self) -> Reads:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        pass


class ReadsAhead(Reads):
    """In a thread of their own, which goes on with what is said to follow: one need at a time.

    What could not be read is told when it is asked for. Only the time in which nobody decodes,
    because the bytes are not there yet, is the stage `read`.
    """

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="pipeprof-ahead")
        self._coming: deque[tuple[ObjectInfo, tuple[Range, ...], Future[Fetched]]] = deque()

    def read(self, item: ObjectInfo, need: Need) -> Sequence[Buffer]:
        coming = self._taken(item, need.ranges)
        start = perf_counter()
        with reading():
            buffers, size, requests = coming.result()
        record(Span(Stage.READ, start, perf_counter(), bytes=size, requests=requests))
        self._follow(item, need)
        return buffers

    def ahead(self, item: ObjectInfo, need: Need) -> None:
        self._fetch(item, need.ranges)
        if sum(length for _, length in need.ranges) < _SMALL:
            self._follow(item, need)

    def _follow(self, item: ObjectInfo, need: Need) -> None:
        for following in need.then:
            if not self._comes(item, (following,)):
                self._fetch(item, (following,))

    def _taken(self, item: ObjectInfo, ranges: tuple[Range, ...]) -> Future[Fetched]:
        if not self._comes(item, ranges):  # as the rare row that ends far beyond its split
            return self._thread.submit(_read, self._store, item, ranges)
        while True:
            source, those, coming = self._coming.popleft()
            if (source, those) == (item, ranges):
                return coming
            coming.cancel()  # a decoder that met damage never asked for it

    def _comes(self, item: ObjectInfo, ranges: tuple[Range, ...]) -> bool:
        return any((item, ranges) == (source, those) for source, those, _ in self._coming)

    def _fetch(self, item: ObjectInfo, ranges: tuple[Range, ...]) -> None:
        coming = self._thread.submit(_read, self._store, item, ranges)
        self._coming.append((item, ranges, coming))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._coming.clear()
        self._thread.shutdown(wait=False, cancel_futures=True)  # it ends with what it reads now


def _read(store: Store, item: ObjectInfo, ranges: tuple[Range, ...]) -> Fetched:
    with tallied(Tally()) as tally:
        buffers = store.read(item, ranges)
    return buffers, tally.bytes, tally.requests
