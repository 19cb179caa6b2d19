"""In the main process, of batches that workers make: who made each, how it came, what was said of
it. Hangs on the iterator as `observe` does."""

from __future__ import annotations

import weakref
from math import nan
from time import perf_counter
from typing import Any

import numpy as np

from pipeprof.measure.ring import Ring, record_number
from pipeprof.measure.rows import SEEN, WAY, Floats, nothing_known

Moments = tuple[float, float, float]
"""Of a batch on its way to main: received, unpickled, pinned."""

_UNKNOWN: Moments = (nan, nan, nan)
_NO_KEY = (None, 0, nan)
_FETCH_START = SEEN.index("fetch_start_s")


class WorkersObserver:
    """``num_workers`` ≥ 1. A worker's results arrive in the order in which it made them, so the
    n-th result of a worker in an epoch is its n-th record."""

    def __init__(self, ring: Ring) -> None:
        self._ring = ring
        self._arrivals = Arrivals(ring, 0)
        self._resumed = 0
        self._in_order = True
        self._last_index = -1
        self._sampler = SamplerTime()
        self._way = _Way()

    def begin_epoch(self) -> None:
        """The workers begin their first, or their next."""
        self._arrivals.settle()
        self._arrivals = Arrivals(self._ring, self._arrivals.epoch + 1)

    @staticmethod
    def fits(iterator: Any) -> bool:
        """Whether it is torch's own iterator, or behaves as that."""
        return hasattr(type(iterator), "_get_data") and all(
            hasattr(iterator, name) for name in ("_task_info", "_rcvd_idx", "_num_workers")
        )

    def attach(self, iterator: Any) -> None:
        """Note each arrival from now on; persistent iterators keep the hook over epochs."""
        self._in_order = getattr(iterator, "_in_order", True)  # torch < 2.6 knows no other
        self._way.attach(iterator)
        self._sampler.attach(iterator)
        owner, get_data, note = weakref.ref(iterator), type(iterator)._get_data, self._note

        def observed_get_data() -> Any:
            itself = owner()
            result = get_data(itself)
            note(itself, result[0], perf_counter())
            return result

        iterator._get_data = observed_get_data

    def key(self, iterator: Any, batch: Any) -> Any:
        index = iterator._rcvd_idx - 1 if self._in_order else self._last_index
        sampler = self._sampler
        spent_s, sampler.spent_s = sampler.spent_s, 0.0
        return self._arrivals, index, spent_s

    def columns(self, keys: list[Any], moments: Floats) -> tuple[Floats, int]:
        table, found = nothing_known(len(keys)), []
        for place, (arrivals, index, sampler_s) in enumerate(key or _NO_KEY for key in keys):
            if arrivals is None:
                continue
            if arrivals.order:
                arrivals.settle()
            arrival = arrivals.known.pop(index, None)
            if arrival is not None:
                found.append((place, *arrival, sampler_s))
        if found:
            places, workers, numbers, *way = zip(*found, strict=True)
            rows = list(places)
            table[rows, : len(WAY)] = np.column_stack([workers, *way])
            table[rows, len(WAY) :] = self._ring.read(workers, numbers)
        lost = int(np.isnan(table[:, _FETCH_START]).sum())
        return table, lost

    def leave(self) -> None:
        pass

    def _note(self, iterator: Any, index: Any, now: float) -> None:
        way = self._way
        moments = way.noted.pop(index, _UNKNOWN) if way.pinned else (way.received_s, now, nan)
        if not isinstance(index, int):  # a persistent worker says that it begins an epoch
            self._resumed += 1
            if not self._resumed % iterator._num_workers:
                self.begin_epoch()
            return
        task = iterator._task_info.get(index)
        if task is not None:  # else an abandoned epoch left it in the queue
            self._arrivals.order.append((index, task[0], moments))
            self._last_index = index


class SamplerTime:
    """The time that main spends on picking indices."""

    def __init__(self) -> None:
        self.spent_s = 0.0
        """Since whoever reads it has set it to 0."""

    def attach(self, iterator: Any) -> None:
        owner, pick = weakref.ref(iterator), getattr(type(iterator), "_next_index", None)
        if pick is None:
            return

        def timed_next_index() -> Any:
            start = perf_counter()
            try:
                return pick(owner())
            finally:
                self.spent_s += perf_counter() - start

        iterator._next_index = timed_next_index


class Arrivals:
    """The results of one epoch's workers, as they came."""

    def __init__(self, ring: Ring, epoch: int) -> None:
        self._ring = ring
        self.epoch = epoch
        self.order: list[tuple[int, int, Moments]] = []
        """Task, worker, and its moments: those not yet counted."""
        self._counts: dict[int, int] = {}
        """Worker → results so far."""
        self.known: dict[int, tuple[float, ...]] = {}
        """Task → worker, number of its record, received, unpickled, pinned: of what is counted."""

    def settle(self) -> None:
        """Number what has come."""
        counts, first = self._counts, record_number(self.epoch, 0)
        for index, worker, moments in self.order:
            count = counts.get(worker, 0)
            counts[worker] = count + 1
            if not count:
                self._skip_epoch(worker)
                first = record_number(self.epoch, 0)
            self.known[index] = (worker, first + count, *moments)
        self.order.clear()

    def _skip_epoch(self, worker: int) -> None:
        """torchdata's loader, resumed at an epoch's end, begins the next as it is made."""
        now, then = record_number(self.epoch, 0), record_number(self.epoch + 1, 0)
        if not self._ring.holds(worker, now) and self._ring.holds(worker, then):
            self.epoch += 1


class _Way:
    """Of a batch from the pipe to main: received, unpickled, and, by the pin thread, pinned."""

    def __init__(self) -> None:
        self.received_s = nan
        """The bytes that came last: without a pin thread, those of the batch that main takes."""
        self.pinned = False
        """There is a pin thread, which fills `noted`."""
        self.noted: dict[Any, Moments] = {}
        """Task → its moments, until main takes it."""

    def attach(self, iterator: Any) -> None:
        results = getattr(iterator, "_worker_result_queue", None)
        if not hasattr(results, "_recv_bytes"):
            return
        self._time_receipt(results)
        self.pinned = getattr(iterator, "_pin_memory_thread", None) is not None
        if self.pinned:
            self._time_pinning(results, iterator._data_queue)

    def _time_receipt(self, results: Any) -> None:
        receive = results._recv_bytes

        def timed_receive(*arguments: Any) -> Any:
            data = receive(*arguments)
            self.received_s = perf_counter()
            return data

        results._recv_bytes = timed_receive

    def _time_pinning(self, results: Any, pinned: Any) -> None:
        """In the pin thread, which takes from ``results`` and puts into ``pinned``."""
        taker, take = weakref.ref(results), type(results).get
        putter, put = weakref.ref(pinned), type(pinned).put
        unpickled_s = nan

        def timed_get(*arguments: Any, **options: Any) -> Any:
            nonlocal unpickled_s
            item = take(taker(), *arguments, **options)
            unpickled_s = perf_counter()
            return item

        def timed_put(item: Any, *arguments: Any, **options: Any) -> Any:
            if isinstance(item[0], int):
                self.noted[item[0]] = self.received_s, unpickled_s, perf_counter()
            return put(putter(), item, *arguments, **options)

        results.get, pinned.put = timed_get, timed_put
