"""Observe batches from worker processes in the main process.

The observer notes which worker fetched each batch and when it arrived, and reads the worker's
record of it. It hooks the iterator as `pipeprof.loaders.instrument.inline_observer` does.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from math import nan
from operator import attrgetter
from typing import Any

import numpy as np

from pipeprof.loaders.instrument.hooks import Hooks
from pipeprof.loaders.instrument.wake_up import wake_by_next_task
from pipeprof.measure.clock import SYSTEM_CLOCK, Clock
from pipeprof.measure.ring import Ring
from pipeprof.measure.rows import (
    RECEIVE_FIELDS,
    SOURCE_FIELDS,
    Floats,
    Source,
)

Moments = tuple[float, float, float, float]
"""When a batch was received, unpickled and pinned, and the CPU seconds of unpickling."""

_UNKNOWN: Moments = (nan, nan, nan, nan)
_WORKER, _FETCH_START = SOURCE_FIELDS.index("worker"), SOURCE_FIELDS.index("fetch_start_s")


class WorkerObserver:
    """Observes a loader with ``num_workers`` of at least 1."""

    key_takes_batch = False
    batches: Iterator[Any] | None = None

    def __init__(self, ring: Ring, clock: Clock = SYSTEM_CLOCK) -> None:
        self._clock = clock
        self.ring, self._hooks = ring, Hooks()
        self.workers = 0
        self.capacity = 0
        """The most batches that workers prefetch."""
        self._sampler, self._receipts = SamplerTime(clock), _ReceiptTimes(clock)
        self._arrivals = Arrivals(ring, 0, self._sampler)
        self._resumed = 0
        self._next_task = 0
        self.may_pause = False
        """Whether hooks can be removed for a while, as it is known which batches that concerns."""
        self.key: Callable[[Any], Any] = attrgetter("_rcvd_idx")
        """Returns the batch's task + 1, because torch has counted on when it yields a batch."""

    def begin_epoch(self) -> None:
        """Expect the records of the workers' first or next epoch."""
        self._arrivals = Arrivals(self.ring, self._arrivals.epoch + 1, self._sampler)

    @staticmethod
    def supports(iterator: Any) -> bool:
        """Return whether ``iterator`` is torch's own, or has the attributes that hooks need."""
        return hasattr(type(iterator), "_get_data") and all(
            hasattr(iterator, name) for name in ("_rcvd_idx", "_num_workers")
        )

    def attach(self, iterator: Any) -> None:
        """Note each arrival from now on; a persistent iterator keeps the hook over epochs."""
        in_order = getattr(iterator, "_in_order", True)  # torch < 2.6 always keeps the order
        if not in_order:
            self.key = self._last_arrived
        self.may_pause = in_order and all(
            hasattr(iterator, name) for name in ("_send_idx", "_prefetch_factor", "_index_queues")
        )
        self.workers = iterator._num_workers
        self.capacity = self.workers * getattr(iterator, "_prefetch_factor", 2)
        self._receipts.attach(iterator, self._hooks)
        self._sampler.attach(iterator, self._hooks)
        owner, get_data, receipts = weakref.ref(iterator), type(iterator)._get_data, self._receipts
        clock_now, cpu_now = self._clock.now, self._clock.cpu_now

        def observed_get_data() -> Any:
            itself: Any = owner()
            result = get_data(itself)
            now, task = clock_now(), result[0]
            if receipts.pinned:
                moments = receipts.by_task.pop(task, _UNKNOWN)
            else:
                moments = receipts.received_s, now, nan, cpu_now() - receipts.received_cpu_s
            if isinstance(task, int):
                self._arrivals.undelivered.append((task, moments))
                self._next_task = task + 1
            else:
                self._resume(itself)
            return result

        self._hooks.add(iterator, "_get_data", observed_get_data)
        self.set_active(True)

    def source(self) -> Source:
        return self._arrivals

    def set_active(self, on: bool) -> None:
        """Put the hooks in place, or remove them."""
        self._hooks.set(on)
        if not on:  # what is left came from the pin thread, for batches that are not recorded
            self._receipts.by_task.clear()

    def record_from_next_task(self, iterator: Any) -> None:
        """Have workers put their hooks in place with their next task, if the window has it."""
        for queue in iterator._index_queues:
            wake_by_next_task(queue)

    def close(self) -> None:
        pass

    def _last_arrived(self, iterator: Any) -> int:
        return self._next_task

    def _resume(self, iterator: Any) -> None:
        """Count the persistent workers that begin an epoch; it begins when all of them have."""
        self._resumed += 1
        if not self._resumed % iterator._num_workers:
            self.begin_epoch()


class SamplerTime:
    """Measures the time that the main process takes to draw indices from the sampler."""

    def __init__(self, clock: Clock) -> None:
        self._now = clock.now
        self._spent: list[tuple[float, float]] = []
        """When each draw ended, and its seconds."""

    def attach(self, iterator: Any, hooks: Hooks) -> None:
        owner, next_index = weakref.ref(iterator), getattr(type(iterator), "_next_index", None)
        now = self._now
        if next_index is None:
            return

        def timed_next_index() -> Any:
            start = now()
            try:
                return next_index(owner())
            finally:
                end = now()
                self._spent.append((end, end - start))

        hooks.add(iterator, "_next_index", timed_next_index)

    def between(self, moments: Floats) -> Floats:
        """Return the seconds of the draws that ended between each of ``moments`` and the last.
        ``moments`` ascend, also from one call to the next."""
        spent = np.array(self._spent).reshape(-1, 2)
        reached = np.searchsorted(spent[:, 0], moments, side="right")
        del self._spent[: reached.max(initial=0)]
        return np.diff(np.concatenate([[0.0], np.cumsum(spent[:, 1])])[reached], prepend=0.0)


class Arrivals:
    """The source of one epoch's rows: arrivals in main, joined with the workers' records."""

    def __init__(self, ring: Ring, epoch: int, sampler: SamplerTime) -> None:
        self._ring, self._sampler = ring, sampler
        self.epoch = epoch
        self._first_read = True
        self.undelivered: list[tuple[int, Moments]] = []
        """Task and moments of each batch that arrived and is not known to be delivered."""

    def columns(self, keys: list[Any], moments: Floats) -> tuple[Floats, int]:
        rows = self._joined(np.array(keys, dtype=np.float64) - 1, moments)  # NaN for no key
        return rows, int(np.isnan(rows[:, _FETCH_START]).sum())

    def _joined(self, tasks: Floats, moments: Floats) -> Floats:
        """Return [tasks, `SOURCE_FIELDS`]; the worker is -2 where a record is lost."""
        arrived, received = dict(self.undelivered), len(RECEIVE_FIELDS) - 1
        rows = np.empty((len(tasks), len(SOURCE_FIELDS)))
        rows[:, :received] = [arrived.get(task, _UNKNOWN) for task in tasks.tolist()]
        rows[:, received] = self._sampler.between(moments[:, 1])
        rows[:, received + 1 :] = self._read_records(tasks)
        rows[np.isnan(rows[:, _FETCH_START]), _WORKER] = -2
        last = np.nanmax(tasks, initial=-1.0)
        self.undelivered = [each for each in self.undelivered if each[0] > last]
        return rows

    def _read_records(self, tasks: Floats) -> Floats:
        """Return [tasks, `pipeprof.measure.ring.FIELDS`] from the ring."""
        records = self._ring.read(self.epoch, tasks)
        # torchdata's loader begins the next epoch at once when it is resumed at an epoch's end
        if self._first_read and np.isnan(records).all():
            later = self._ring.read(self.epoch + 1, tasks)
            if not np.isnan(later).all():
                self.epoch, records = self.epoch + 1, later
        self._first_read = False
        return records


class _ReceiptTimes:
    """Notes when each batch from the pipe is received, unpickled and, with a pin thread, pinned."""

    def __init__(self, clock: Clock) -> None:
        self._now, self._cpu_now = clock.now, clock.cpu_now
        self.received_s = self.received_cpu_s = nan
        """When the last bytes were received, and the CPU time of the receiving thread by then.
        Without a pin thread these are the bytes of the batch that main takes next."""
        self.pinned = False
        """Whether there is a pin thread, which fills `by_task`."""
        self.by_task: dict[Any, Moments] = {}
        """The moments of each task until main takes its batch."""

    def attach(self, iterator: Any, hooks: Hooks) -> None:
        results = getattr(iterator, "_worker_result_queue", None)
        if not hasattr(results, "_recv_bytes"):
            return
        self._time_receipt(results, hooks)
        self.pinned = getattr(iterator, "_pin_memory_thread", None) is not None
        if self.pinned:
            self._time_pinning(results, iterator._data_queue, hooks)

    def _time_receipt(self, results: Any, hooks: Hooks) -> None:
        receive, now, cpu_now = results._recv_bytes, self._now, self._cpu_now

        def timed_receive(*arguments: Any) -> Any:
            data = receive(*arguments)
            self.received_cpu_s = cpu_now()
            self.received_s = now()
            return data

        hooks.add(results, "_recv_bytes", timed_receive)

    def _time_pinning(self, results: Any, pinned: Any, hooks: Hooks) -> None:
        """Hook the queues of the pin thread, which moves batches from ``results`` to ``pinned``."""
        taker, get = weakref.ref(results), type(results).get
        putter, put = weakref.ref(pinned), type(pinned).put
        now, cpu_now = self._now, self._cpu_now
        unpickled_s = cpu_s = nan

        def timed_get(*arguments: Any, **options: Any) -> Any:
            nonlocal unpickled_s, cpu_s
            item = get(taker(), *arguments, **options)
            unpickled_s = now()
            cpu_s = cpu_now() - self.received_cpu_s
            return item

        def timed_put(item: Any, *arguments: Any, **options: Any) -> Any:
            if isinstance(item[0], int):
                self.by_task[item[0]] = self.received_s, unpickled_s, now(), cpu_s
            return put(putter(), item, *arguments, **options)

        hooks.add(results, "get", timed_get)
        hooks.add(pinned, "put", timed_put)


def why_unobserved(loader: Any, iterator: Any, running: Any) -> str | None:
    """Return why the workers of ``iterator`` cannot be observed; ``None`` if they can."""
    if iterator is running:
        return "its workers were running before they could be hooked"
    if not WorkerObserver.supports(iterator):
        return f"{type(loader).__name__} makes an iterator of its own"
    if iterator._rcvd_idx:
        return "it was resumed by dropping batches, which are not counted separately"
    return None
