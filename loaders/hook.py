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
from time import perf_counter
from types import TracebackType
from typing import Any

from pipeprof.loaders.batches import weigh
from pipeprof.loaders.sender import Sender
from pipeprof.measure.meter import Meter
from pipeprof.measure.ring import UNSAMPLED, Ring, pack_always, pack_sample
from pipeprof.measure.spans import Tally, current
from pipeprof.model import Stage

Tell = Callable[[bytes], None]
"""Takes what is known of a batch, as a record of `pipeprof.measure.ring`."""


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
    sender, meter = Sender(worker, ring), Meter(weigh)

    def create_timed(kind: int, dataset: Any, *arguments: Any) -> Any:
        fetcher = create(kind, dataset, *arguments)
        # a data set may run a loader of its own, in which we have no business
        if info is None or dataset is info.dataset:
            sender.begin_epoch()
            instrument(fetcher, sender.tell, meter)
        return fetcher

    kinds.create_fetcher = staticmethod(create_timed)
    hide_our_frames()
    sender.watch(_results_queue())


def _results_queue() -> Any:
    """Where this worker puts its batches; ``None`` when torch keeps it elsewhere."""
    frame = sys._getframe()
    while frame is not None and frame.f_code.co_name != "_worker_loop":
        frame = frame.f_back  # type: ignore[assignment]
    return frame.f_locals.get("data_queue") if frame is not None else None


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


def instrument(fetcher: Any, tell: Tell, meter: Meter) -> None:
    """Let ``fetcher`` tell of each batch, also when making it raises."""
    # a bound method in the closure would keep the fetcher, and what it iterates, alive
    owner, fetch = weakref.ref(fetcher), type(fetcher).fetch
    collate, clock = fetcher.collate_fn, perf_counter

    def timed_collate(samples: Any) -> Any:
        # as `stage` does it, in one call instead of five
        tally = current.tally
        if tally is None:
            return collate(samples)
        before_s, tally.inner_s = tally.inner_s, 0.0
        start = clock()
        try:
            return collate(samples)
        finally:
            total_s = clock() - start
            tally.charge(Stage.COLLATE, total_s - tally.inner_s)
            tally.inner_s = before_s + total_s

    def timed_fetch(index: Any) -> Any:
        tally, batch = Tally(), None
        outer, current.tally = current.tally, tally
        start = clock()
        if sampled := not meter.skip:
            sampled = _begun(meter, start)
        else:
            meter.skip -= 1
        try:
            batch = fetch(owner(), index)
            return batch
        finally:
            end = clock()
            current.tally = outer
            seconds = tally.seconds.get
            told = pack_always(
                start, end, seconds(Stage.READ, 0.0), seconds(Stage.DECODE, 0.0),
                seconds(Stage.TRANSFORM, 0.0), seconds(Stage.COLLATE, 0.0),
                tally.bytes, tally.requests, tally.turns,
            )  # fmt: skip
            tell(told + (_ended(meter, batch) if sampled else UNSAMPLED))

    fetcher.fetch, fetcher.collate_fn = timed_fetch, timed_collate


def _begun(meter: Meter, now: float) -> bool:
    try:
        meter.begin(now)
    except Exception:
        return False
    return True


def _ended(meter: Meter, batch: Any) -> bytes:
    try:
        return pack_sample(meter.end(batch))
    except Exception:  # a batch is any object: weighing it may raise
        return UNSAMPLED
