"""In the main process: which worker made each batch, how it came, what the worker said of it.

One observer per form of torch's iterator. Each hangs on the iterator by instance attributes that
hold no reference back, so that it is dropped, and its workers end, just as without us.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from contextlib import ExitStack
from math import nan
from time import perf_counter
from typing import Any, Protocol

import numpy as np

from pipeprof.loaders.batches import count_samples, weigh
from pipeprof.loaders.hook import instrument
from pipeprof.measure.meter import Meter
from pipeprof.measure.recorder import SEEN, WAY, Floats, Source
from pipeprof.measure.ring import Ring, record_number
from pipeprof.measure.watch_reads import reads_watched

_WORKER, _PINNED = WAY.index("worker"), WAY.index("pinned_s")
_ALWAYS, _SAMPLES = SEEN.index("fetch_start_s"), SEEN.index("samples")


class Observer(Source, Protocol):
    def key(self, iterator: Any, batch: Any) -> Any:
        """Of the ``batch`` that ``iterator`` has just delivered."""
        ...

    def leave(self) -> None:
        """The pass has ended, or was left."""
        ...


class HostObserver:
    """Sees nothing but that a batch came: for iterables that cannot be hooked."""

    def __init__(self, batch_size: Any = None) -> None:
        self._batch_size = batch_size

    def key(self, iterator: Any, batch: Any) -> Any:
        return count_samples(batch, self._batch_size)

    def columns(self, keys: list[Any]) -> tuple[Floats, int]:
        table = nothing_known(len(keys))
        table[:, _SAMPLES] = [nan if key is None else key for key in keys]
        return table, 0

    def leave(self) -> None:
        pass


def nothing_known(count: int) -> Floats:
    """[count, `SEEN`]"""
    table = np.full((count, len(SEEN)), nan)
    table[:, _WORKER] = -2
    return table


class SamplerTime:
    """The time that main spends on picking indices."""

    def __init__(self) -> None:
        self._spent_s = 0.0

    def attach(self, iterator: Any) -> None:
        owner, pick = weakref.ref(iterator), getattr(type(iterator), "_next_index", None)
        if pick is None:
            return

        def timed_next_index() -> Any:
            start = perf_counter()
            try:
                return pick(owner())
            finally:
                self._spent_s += perf_counter() - start

        iterator._next_index = timed_next_index

    def take(self) -> float:
        """Since the last call."""
        spent, self._spent_s = self._spent_s, 0.0
        return spent


class InlineObserver:
    """``num_workers=0``: the fetcher lives in this process."""

    def __init__(self) -> None:
        self._last: tuple[float, ...] | None = None
        self._pins = False
        self._watching = ExitStack()

    def attach(self, iterator: Any) -> None:
        instrument(iterator._dataset_fetcher, self._keep, Meter(weigh))
        self._pins = bool(getattr(iterator, "_pin_memory", False))
        self._watching.enter_context(reads_watched())

    def key(self, iterator: Any, batch: Any) -> Any:
        last, self._last = self._last, None
        return (perf_counter(), *last) if self._pins and last is not None else last

    def columns(self, keys: list[Any]) -> tuple[Floats, int]:
        table = nothing_known(len(keys))
        table[:, _WORKER] = -1
        if self._pins:
            table[:, _PINNED] = [nan if key is None else key[0] for key in keys]
            keys = [None if key is None else key[1:] for key in keys]
        # those that were sampled are longer
        for length in {len(key) for key in keys if key is not None}:
            rows = [place for place, key in enumerate(keys) if key and len(key) == length]
            table[rows, _ALWAYS : _ALWAYS + length] = [keys[place] for place in rows]
        return table, sum(key is None for key in keys)

    def leave(self) -> None:
        self._watching.close()

    def _keep(self, told: Sequence[float], sample: Sequence[float] | None) -> None:
        self._last = tuple(told) if sample is None else (*told, *sample)


class WorkersObserver:
    """``num_workers`` ≥ 1. A worker's results arrive in the order in which it made them, so the
    n-th result of a worker in an epoch is its n-th record."""

    def __init__(self, ring: Ring) -> None:
        self._ring = ring
        self._arrivals = Arrivals(ring, 0)
        self._resumed = 0
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
        self._way.attach(iterator)
        self._sampler.attach(iterator)
        owner, get_data = weakref.ref(iterator), type(iterator)._get_data
        observer = self

        def observed_get_data() -> Any:
            result = get_data(owner())
            observer._note(owner(), result[0], perf_counter())
            return result

        iterator._get_data = observed_get_data

    def key(self, iterator: Any, batch: Any) -> Any:
        in_order = getattr(iterator, "_in_order", True)  # torch < 2.6 knows no other
        index = iterator._rcvd_idx - 1 if in_order else self._last_index
        return self._arrivals, index, self._sampler.take()

    def columns(self, keys: list[Any]) -> tuple[Floats, int]:
        table, found = nothing_known(len(keys)), []
        for place, key in enumerate(keys):
            arrival = key[0].take(key[1]) if key is not None else None
            if arrival is not None:
                found.append((place, *arrival, key[2]))
        if found:
            places, workers, numbers, *way = zip(*found, strict=True)
            rows = list(places)
            table[rows, : len(WAY)] = np.column_stack([workers, *way])
            table[rows, len(WAY) :] = self._ring.read(workers, numbers)
        lost = int(np.isnan(table[:, _ALWAYS]).sum())
        return table, lost

    def leave(self) -> None:
        pass

    def _note(self, iterator: Any, index: Any, now: float) -> None:
        received_s, arrived_s, pinned_s = self._way.take(index, now)
        if not isinstance(index, int):  # a persistent worker says that it begins an epoch
            self._resumed += 1
            if not self._resumed % iterator._num_workers:
                self.begin_epoch()
            return
        task = iterator._task_info.get(index)
        if task is not None:  # else an abandoned epoch left it in the queue
            self._arrivals.order.append((index, task[0], received_s, arrived_s, pinned_s))
            self._last_index = index


class Arrivals:
    """The results of one epoch's workers, as they came."""

    def __init__(self, ring: Ring, epoch: int) -> None:
        self._ring = ring
        self.epoch = epoch
        self.order: list[tuple[int, int, float, float, float]] = []
        """Task, worker, and when it was received, unpickled, pinned: those not yet counted."""
        self._counts: dict[int, int] = {}
        """Worker → results so far."""
        self._known: dict[int, tuple[float, ...]] = {}
        """Task → worker, number of its record, received, unpickled, pinned."""

    def take(self, index: int) -> tuple[float, ...] | None:
        """Of task ``index``: worker, number of its record, received, unpickled, pinned."""
        self.settle()
        return self._known.pop(index, None)

    def settle(self) -> None:
        """Number what has come."""
        for index, worker, *moments in self.order:
            count = self._counts.get(worker, 0)
            self._counts[worker] = count + 1
            if not count:
                self._skip_epoch(worker)
            self._known[index] = (worker, record_number(self.epoch, count), *moments)
        self.order.clear()

    def _skip_epoch(self, worker: int) -> None:
        """torchdata's loader, resumed at an epoch's end, begins the next as it is made."""
        now, then = record_number(self.epoch, 0), record_number(self.epoch + 1, 0)
        if not self._ring.holds(worker, now) and self._ring.holds(worker, then):
            self.epoch += 1


class _Way:
    """Of a batch from the pipe to main: received, unpickled, and, by the pin thread, pinned."""

    def __init__(self) -> None:
        self._received_s = nan
        self._pinned = False
        self._noted: dict[Any, tuple[float, float, float]] = {}
        """With a pin thread: task → received, unpickled, pinned."""

    def attach(self, iterator: Any) -> None:
        results = getattr(iterator, "_worker_result_queue", None)
        if not hasattr(results, "_recv_bytes"):
            return
        self._time_receipt(results)
        self._pinned = getattr(iterator, "_pin_memory_thread", None) is not None
        if self._pinned:
            self._time_pinning(results, iterator._data_queue)

    def take(self, index: Any, now: float) -> tuple[float, float, float]:
        """Moments of the batch that main has just taken: received, unpickled, pinned."""
        if self._pinned:
            return self._noted.pop(index, (nan, nan, nan))
        received_s, self._received_s = self._received_s, nan
        return received_s, now, nan

    def _time_receipt(self, results: Any) -> None:
        receive = results._recv_bytes

        def timed_receive(*arguments: Any) -> Any:
            data = receive(*arguments)
            self._received_s = perf_counter()
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
                self._noted[item[0]] = self._received_s, unpickled_s, perf_counter()
            return put(putter(), item, *arguments, **options)

        results.get, pinned.put = timed_get, timed_put
