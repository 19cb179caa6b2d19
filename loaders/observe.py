"""In the main process: which worker made each batch, when it arrived, what the worker said of it.

One observer per form of torch's iterator. Each hangs on the iterator by instance attributes that
hold no reference back, so that it is dropped, and its workers end, just as without us.
"""

from __future__ import annotations

import weakref
from time import perf_counter
from typing import Any, Protocol

from pipeprof.loaders.hook import instrument
from pipeprof.measure.recorder import Origin
from pipeprof.measure.ring import Ring, WorkerRecord, record_number


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
        return Origin()


class InlineObserver:
    """``num_workers=0``: the fetcher lives in this process."""

    expects_record = True

    def __init__(self) -> None:
        self._last: WorkerRecord | None = None

    def begin_epoch(self) -> None:
        self._last = None

    def attach(self, iterator: Any) -> None:
        instrument(iterator._dataset_fetcher, self._keep)

    def origin(self, iterator: Any) -> Origin:
        record, self._last = self._last, None
        return Origin(-1, record.fetch_end_s if record else None, record)

    def _keep(self, record: WorkerRecord) -> None:
        self._last = record


class WorkersObserver:
    """``num_workers`` ≥ 1. A worker's results arrive in the order in which it made them, so the
    n-th result of a worker in an epoch is its n-th record."""

    expects_record = True

    def __init__(self, ring: Ring) -> None:
        self._ring = ring
        self._epoch = 0
        self._received: dict[int, int] = {}
        self._arrived: dict[int, Origin] = {}
        self._last_index = -1

    def begin_epoch(self) -> None:
        self._epoch += 1
        self._received.clear()
        self._arrived.clear()

    @staticmethod
    def fits(iterator: Any) -> bool:
        """Whether it is torch's own iterator, or behaves as that."""
        return all(hasattr(iterator, name) for name in ("_get_data", "_task_info", "_rcvd_idx"))

    def attach(self, iterator: Any) -> None:
        """Note each arrival from now on; persistent iterators keep the hook over epochs."""
        owner, get_data = weakref.ref(iterator), type(iterator)._get_data
        observer = self

        def observed_get_data() -> Any:
            index, data = get_data(owner())
            observer._note(owner(), index, perf_counter())
            return index, data

        iterator._get_data = observed_get_data

    def origin(self, iterator: Any) -> Origin:
        in_order = getattr(iterator, "_in_order", True)  # torch < 2.6 knows no other
        index = iterator._rcvd_idx - 1 if in_order else self._last_index
        return self._arrived.pop(index, Origin())

    def _note(self, iterator: Any, index: Any, now: float) -> None:
        # what an abandoned epoch left in the queue, and acknowledgements, belong to no task
        task = iterator._task_info.get(index) if isinstance(index, int) else None
        if task is None:
            return
        worker = task[0]
        count = self._received.get(worker, 0)
        self._received[worker] = count + 1
        record = self._ring.read(worker, record_number(self._epoch, count))
        self._arrived[index] = Origin(worker, now, record)
        self._last_index = index
