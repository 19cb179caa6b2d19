"""In the main process: which worker made each batch, how it came, what the worker said of it.

One observer per form of torch's iterator. Each hangs on the iterator by instance attributes that
hold no reference back, so that it is dropped, and its workers end, just as without us.
"""

from __future__ import annotations

import weakref
from math import nan
from time import perf_counter
from typing import Any, Protocol

from pipeprof.loaders.batches import weigh
from pipeprof.loaders.hook import instrument
from pipeprof.measure.meter import Meter
from pipeprof.measure.recorder import Origin
from pipeprof.measure.ring import Ring, record_number

_NOWHERE = Origin()


class Observer(Protocol):
    expects_record: bool
    """A batch without a record is a record lost."""

    def begin_epoch(self) -> None:
        """The loader is about to be asked for an iterator."""
        ...

    def origin(self, iterator: Any) -> Origin:
        """Of the batch that ``iterator`` has just delivered."""
        ...


class HostObserver:
    """Sees nothing but that a batch came: for iterables that cannot be hooked."""

    expects_record = False

    def begin_epoch(self) -> None:
        pass

    def origin(self, iterator: Any) -> Origin:
        return _NOWHERE


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

    expects_record = True

    def __init__(self) -> None:
        self._last: bytes | None = None
        self._pins = False

    def begin_epoch(self) -> None:
        self._last = None

    def attach(self, iterator: Any) -> None:
        instrument(iterator._dataset_fetcher, self._keep, Meter(weigh))
        self._pins = bool(getattr(iterator, "_pin_memory", False))

    def origin(self, iterator: Any) -> Origin:
        last, self._last = self._last, None
        return Origin(-1, nan, nan, perf_counter() if self._pins else nan, 0.0, last)

    def _keep(self, told: bytes) -> None:
        self._last = told


class WorkersObserver:
    """``num_workers`` ≥ 1. A worker's results arrive in the order in which it made them, so the
    n-th result of a worker in an epoch is its n-th record."""

    expects_record = True

    def __init__(self, ring: Ring) -> None:
        self._ring = ring
        self._epoch = 0
        self._results: dict[int, int] = {}
        """Worker → how many came in this epoch."""
        self._arrived: dict[int, Origin] = {}
        """Task → what is known of its batch, until it is delivered."""
        self._last_index = -1
        self._sampler = SamplerTime()
        self._way = _Way()

    def begin_epoch(self) -> None:
        self._epoch += 1
        self._results.clear()
        self._arrived.clear()

    @staticmethod
    def fits(iterator: Any) -> bool:
        """Whether it is torch's own iterator, or behaves as that."""
        return all(hasattr(iterator, name) for name in ("_get_data", "_task_info", "_rcvd_idx"))

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

    def origin(self, iterator: Any) -> Origin:
        in_order = getattr(iterator, "_in_order", True)  # torch < 2.6 knows no other
        index = iterator._rcvd_idx - 1 if in_order else self._last_index
        return self._arrived.pop(index, _NOWHERE)._replace(sampler_s=self._sampler.take())

    def _note(self, iterator: Any, index: Any, now: float) -> None:
        received_s, arrived_s, pinned_s = self._way.take(index, now)
        # what an abandoned epoch left in the queue, and acknowledgements, belong to no task
        task = iterator._task_info.get(index) if isinstance(index, int) else None
        if task is None:
            return
        worker = task[0]
        count = self._results.get(worker, 0)
        self._results[worker] = count + 1
        record = self._ring.read(worker, record_number(self._epoch, count))
        self._arrived[index] = Origin(worker, received_s, arrived_s, pinned_s, 0.0, record)
        self._last_index = index


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
