"""Inside a process that makes batches: time `fetch` and `collate` of its fetcher.

The data set, its `WorkerInfo` and the loader stay untouched: `DataLoader` reads
``worker_init_fn`` once, when an iterator is made, so a stand-in set around that moment runs in
each worker just before the worker makes its fetcher.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from contextlib import suppress
from time import perf_counter, thread_time
from types import TracebackType
from typing import Any

from pipeprof.measure.ring import Ring, WorkerRecord, record_number
from pipeprof.measure.spans import Tally, stage, tallied
from pipeprof.model import Stage


class WorkerHook:
    """Stands in for the user's ``worker_init_fn``, which it calls; picklable if that is."""

    def __init__(self, ring: Ring, user_init: Callable[[int], None] | None) -> None:
        self._ring = ring
        self._user_init = user_init

    def __call__(self, worker: int) -> None:
        # a torch that we do not know must not cost the user the worker: its records are lost then
        with suppress(Exception):
            instrument_worker(worker, self._ring)
        if self._user_init is not None:
            self._user_init(worker)


def instrument_worker(worker: int, ring: Ring) -> None:
    """Time every fetcher that this worker process makes for its data set, one per epoch."""
    from torch.utils.data import _DatasetKind, get_worker_info

    kinds: Any = _DatasetKind
    create = kinds.create_fetcher
    info = get_worker_info()
    generation = 0

    def create_timed(kind: int, dataset: Any, *arguments: Any) -> Any:
        nonlocal generation
        fetcher = create(kind, dataset, *arguments)
        # a data set may run a loader of its own, in which we have no business
        if info is None or dataset is info.dataset:
            generation += 1
            instrument(fetcher, _Numbered(worker, generation, ring))
        return fetcher

    kinds.create_fetcher = staticmethod(create_timed)
    hide_our_frames()


def hide_our_frames() -> None:
    """In this worker: the traceback that torch sends to main as the text of an error is the one
    it would have sent without us."""
    from torch.utils.data._utils import worker

    module: Any = worker
    wrapper = module.ExceptionWrapper

    def wrapper_without_us(exc_info: Any = None, where: str = "in background") -> Any:
        kind, error, trace = exc_info or sys.exc_info()
        return wrapper((kind, error, _without_us(trace)), where)

    module.ExceptionWrapper = wrapper_without_us


def _without_us(trace: TracebackType | None) -> TracebackType | None:
    """``trace`` less the frames of this file."""
    if trace is None:
        return None
    rest = _without_us(trace.tb_next)
    if trace.tb_frame.f_code.co_filename == __file__:
        return rest
    return TracebackType(rest, trace.tb_frame, trace.tb_lasti, trace.tb_lineno)


class _Numbered:
    """Writes each record under the number of its batch within this worker and epoch."""

    def __init__(self, worker: int, generation: int, ring: Ring) -> None:
        self._worker, self._generation, self._ring = worker, generation, ring
        self._count = 0

    def __call__(self, record: WorkerRecord) -> None:
        self._ring.write(self._worker, record_number(self._generation, self._count), record)
        self._count += 1


def instrument(fetcher: Any, deliver: Callable[[WorkerRecord], None]) -> None:
    """Let ``fetcher`` tell ``deliver`` about each batch, also when making it raises."""
    # a bound method in the closure would keep the fetcher, and what it iterates, alive
    owner, fetch = weakref.ref(fetcher), type(fetcher).fetch
    collate = fetcher.collate_fn

    def timed_collate(samples: Any) -> Any:
        with stage(Stage.COLLATE):
            return collate(samples)

    def timed_fetch(index: Any) -> Any:
        with tallied(Tally()) as tally:
            cpu, start = thread_time(), perf_counter()
            try:
                return fetch(owner(), index)
            finally:
                end = perf_counter()
                deliver(_record(start, end, thread_time() - cpu, tally))

    fetcher.fetch, fetcher.collate_fn = timed_fetch, timed_collate


def _record(start: float, end: float, cpu_s: float, tally: Tally) -> WorkerRecord:
    seconds = tally.seconds
    return WorkerRecord(
        fetch_start_s=start,
        fetch_end_s=end,
        read_s=seconds.get(Stage.READ, 0.0),
        decode_s=seconds.get(Stage.DECODE, 0.0),
        transform_s=seconds.get(Stage.TRANSFORM, 0.0),
        collate_s=seconds.get(Stage.COLLATE, 0.0),
        cpu_s=cpu_s,
        bytes=tally.bytes,
        requests=tally.requests,
    )
