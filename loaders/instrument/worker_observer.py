"""In the main process, of batches that workers make: who made each, how it came, what was said of
it. Hangs on the iterator as `observe` does."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from math import nan
from operator import attrgetter
from typing import Any

import numpy as np

from pipeprof.measure.clock import SYSTEM_CLOCK, Clock
from pipeprof.measure.ring import Ring
from pipeprof.measure.rows import SEEN, WAY, Floats, Source, nothing_known
from pipeprof.model import UNWATCHED

Moments = tuple[float, float, float, float]
"""Of a batch on its way to main: received, unpickled, pinned; and the CPU time of unpickling."""

_UNKNOWN: Moments = (nan, nan, nan, nan)
_WORKER, _FETCH_START = SEEN.index("worker"), SEEN.index("fetch_start_s")


def clocked(iterator: Any) -> int:
    """The key of a batch of which no record is asked for: that of others is 1 or more."""
    return 0


class WorkerObserver:
    """``num_workers`` ≥ 1."""

    of_batch = False

    def __init__(self, ring: Ring, clock: Clock = SYSTEM_CLOCK) -> None:
        self._clock = clock
        self.ring, self._hooks = ring, Hooks()
        self.workers = self.capacity = 0
        """And batches that may be under way at once."""
        self._sampler, self._way = SamplerTime(clock), _ReceiptTimes(clock)
        self._arrivals = Arrivals(ring, 0, self._sampler)
        self._resumed = 0
        self._next_task = 0
        self.may_pause = False
        """Whether the hooks may be taken off meanwhile: it is known which batches pass unseen."""
        self.key: Callable[[Any], Any] = attrgetter("_rcvd_idx")
        """One more than the batch's task, as torch counts on when it hands a batch out."""

    def begin_epoch(self) -> None:
        """The workers begin their first, or their next."""
        self._arrivals = Arrivals(self.ring, self._arrivals.epoch + 1, self._sampler)

    @staticmethod
    def fits(iterator: Any) -> bool:
        """Whether it is torch's own iterator, or behaves as that."""
        return hasattr(type(iterator), "_get_data") and all(
            hasattr(iterator, name) for name in ("_rcvd_idx", "_num_workers")
        )

    def attach(self, iterator: Any) -> None:
        """Note each arrival from now on; persistent iterators keep the hook over epochs."""
        in_order = getattr(iterator, "_in_order", True)  # torch < 2.6 knows no other
        if not in_order:
            self.key = self._last_arrived
        self.may_pause = in_order and all(
            hasattr(iterator, name) for name in ("_send_idx", "_prefetch_factor")
        )
        self.workers = iterator._num_workers
        self.capacity = self.workers * getattr(iterator, "_prefetch_factor", 2)
        self._way.attach(iterator, self._hooks)
        self._sampler.attach(iterator, self._hooks)
        owner, get_data, way = weakref.ref(iterator), type(iterator)._get_data, self._way
        clock_now, cpu_now = self._clock.now, self._clock.cpu_now

        def observed_get_data() -> Any:
            itself: Any = owner()
            result = get_data(itself)
            now, task = clock_now(), result[0]
            if way.pinned:
                moments = way.noted.pop(task, _UNKNOWN)
            else:
                moments = way.received_s, now, nan, cpu_now() - way.received_cpu_s
            if isinstance(task, int):
                self._arrivals.came.append((task, moments))
                self._next_task = task + 1
            else:
                self._resume(itself)
            return result

        self._hooks.add(iterator, "_get_data", observed_get_data)
        self.watch(True)

    def source(self) -> Source:
        return self._arrivals

    def watch(self, on: bool) -> None:
        """Put the hooks on, or take them off."""
        self._hooks.set(on)
        if not on:  # what came since to the pin thread is of batches that nobody asks about
            self._way.noted.clear()

    def leave(self) -> None:
        pass

    def _last_arrived(self, iterator: Any) -> int:
        return self._next_task

    def _resume(self, iterator: Any) -> None:
        """A persistent worker says that it begins an epoch."""
        self._resumed += 1
        if not self._resumed % iterator._num_workers:
            self.begin_epoch()


class Hooks:
    """Attributes of objects, in the place of what those have without; no object is kept alive."""

    def __init__(self) -> None:
        self._on = False
        self._known: list[tuple[Any, str, Any, Any]] = []
        """Owner, weakly; name; hook; what the owner itself has else, or `_NOTHING`."""

    def add(self, owner: Any, name: str, hook: Any) -> None:
        """To be there from the next `set` on."""
        self._known.append((weakref.ref(owner), name, hook, vars(owner).get(name, _NOTHING)))

    def set(self, on: bool) -> None:
        if on == self._on:
            return
        self._on = on
        for reference, name, hook, plain in self._known:
            owner = reference()
            if owner is None:
                continue
            if on or plain is not _NOTHING:
                setattr(owner, name, hook if on else plain)
            else:
                delattr(owner, name)


_NOTHING = object()


class SamplerTime:
    """The time that main spends on picking indices."""

    def __init__(self, clock: Clock) -> None:
        self._now = clock.now
        self._spent: list[tuple[float, float]] = []
        """When it ended, and the seconds."""

    def attach(self, iterator: Any, hooks: Hooks) -> None:
        owner, pick = weakref.ref(iterator), getattr(type(iterator), "_next_index", None)
        now = self._now
        if pick is None:
            return

        def timed_next_index() -> Any:
            start = now()
            try:
                return pick(owner())
            finally:
                end = now()
                self._spent.append((end, end - start))

        hooks.add(iterator, "_next_index", timed_next_index)

    def until(self, moments: Floats) -> Floats:
        """Spent before each of these ``moments``, and after the one before it. They must come after
        those of earlier calls."""
        spent = np.array(self._spent).reshape(-1, 2)
        reached = np.searchsorted(spent[:, 0], moments, side="right")
        del self._spent[: reached.max(initial=0)]
        return np.diff(np.concatenate([[0.0], np.cumsum(spent[:, 1])])[reached], prepend=0.0)


class Arrivals:
    """The results of one epoch's workers, as they came."""

    def __init__(self, ring: Ring, epoch: int, sampler: SamplerTime) -> None:
        self._ring, self._sampler = ring, sampler
        self.epoch = epoch
        self._new = True
        self.came: list[tuple[int, Moments]] = []
        """Task, and its moments: of what is not yet delivered, as far as we know."""

    def columns(self, keys: list[Any], moments: Floats) -> tuple[Floats, int]:
        tasks = np.array(keys, dtype=np.float64) - 1  # NaN for no key
        unwatched = tasks < 0
        tasks[unwatched] = nan
        came = dict(self.came)
        table = nothing_known(len(tasks))
        table[:, : len(WAY) - 1] = [came.get(task, _UNKNOWN) for task in tasks.tolist()]
        table[:, len(WAY) - 1] = self._sampler.until(moments[:, 1])
        if not unwatched.all():
            table[:, len(WAY) :] = self._read_records(tasks)
        lost = np.isnan(table[:, _FETCH_START]) & ~unwatched
        table[lost, _WORKER] = -2
        table[unwatched] = nan
        table[unwatched, _WORKER] = UNWATCHED
        last = np.nanmax(tasks, initial=-1.0)
        self.came = [one for one in self.came if one[0] > last]
        return table, int(lost.sum())

    def _read_records(self, tasks: Floats) -> Floats:
        told = self._ring.read(self.epoch, tasks)
        # torchdata's loader, resumed at an epoch's end, begins the next as it is made
        if self._new and np.isnan(told).all():
            later = self._ring.read(self.epoch + 1, tasks)
            if not np.isnan(later).all():
                self.epoch, told = self.epoch + 1, later
        self._new = False
        return told


class _ReceiptTimes:
    """Of a batch from the pipe to main: received, unpickled, and, by the pin thread, pinned."""

    def __init__(self, clock: Clock) -> None:
        self._now, self._cpu_now = clock.now, clock.cpu_now
        self.received_s = self.received_cpu_s = nan
        """The bytes that came last: without a pin thread, those of the batch that main takes. On
        the clock, and in CPU time of the thread that received them."""
        self.pinned = False
        """There is a pin thread, which fills `noted`."""
        self.noted: dict[Any, Moments] = {}
        """Task → its moments, until main takes it."""

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
        """In the pin thread, which takes from ``results`` and puts into ``pinned``."""
        taker, take = weakref.ref(results), type(results).get
        putter, put = weakref.ref(pinned), type(pinned).put
        now, cpu_now = self._now, self._cpu_now
        unpickled_s = cpu_s = nan

        def timed_get(*arguments: Any, **options: Any) -> Any:
            nonlocal unpickled_s, cpu_s
            item = take(taker(), *arguments, **options)
            unpickled_s = now()
            cpu_s = cpu_now() - self.received_cpu_s
            return item

        def timed_put(item: Any, *arguments: Any, **options: Any) -> Any:
            if isinstance(item[0], int):
                self.noted[item[0]] = self.received_s, unpickled_s, now(), cpu_s
            return put(putter(), item, *arguments, **options)

        hooks.add(results, "get", timed_get)
        hooks.add(pinned, "put", timed_put)
