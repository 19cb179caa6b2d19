"""Inside a process that makes batches: time `fetch` and `collate` of its fetcher.

The data set, its `WorkerInfo` and the loader stay untouched: `DataLoader` reads
``worker_init_fn`` once, when an iterator is made, so a stand-in set around that moment runs in
each worker just before the worker makes its fetcher.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from math import nan
from time import perf_counter
from types import FrameType, TracebackType
from typing import Any

from pipeprof.loaders.batches import count_samples, weigh
from pipeprof.loaders.sender import Sender
from pipeprof.measure import watch_fsspec, watch_open
from pipeprof.measure.meter import Meter
from pipeprof.measure.ring import Ring
from pipeprof.measure.spans import IN_FETCH, Tally, current
from pipeprof.measure.watch_reads import watch_reads

Tell = Callable[[Sequence[float], Sequence[float] | None], None]
"""Takes what is known of a batch: `ALWAYS` and, if it was sampled, `SAMPLED` of
`pipeprof.measure.ring`."""

# an Enum's attributes are slow to look up
_READ, _DECODE, _TRANSFORM, _COLLATE = IN_FETCH

_OUR_FILES = (__file__, watch_open.__file__, watch_fsspec.__file__)


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
    loop = _calling_loop()
    if loop is not None:
        hide_our_frames(loop.f_globals)
        sender.watch(loop.f_locals.get("data_queue"))
    watch_reads()


def _calling_loop() -> FrameType | None:
    """Of torch, or of whoever has a worker loop of its own after torch's pattern."""
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_code.co_name != "_worker_loop":
        frame = frame.f_back
    return frame


def hide_our_frames(module: dict[str, Any]) -> None:
    """In this worker: the traceback that the worker loop's ``module`` sends to main as the text of
    an error is the one it would have sent without us."""
    wrapper = module.get("ExceptionWrapper")
    if wrapper is None:
        return

    def wrapper_without_us(exc_info: Any = None, where: str = "in background") -> Any:
        kind, error, trace = exc_info or sys.exc_info()
        _clean_causes(error)
        return wrapper((kind, error, _without_us(trace)), where)

    module["ExceptionWrapper"] = wrapper_without_us


def _clean_causes(error: BaseException | None) -> None:
    """Of the errors that led to ``error``, whose traces are told with its own."""
    known: set[int] = set()
    waiting = [error]
    while waiting:
        each = waiting.pop()
        if each is None or id(each) in known:
            continue
        known.add(id(each))
        waiting += [each.__cause__, each.__context__]
        if each is not error:
            each.__traceback__ = _without_us(each.__traceback__)


def _without_us(trace: TracebackType | None) -> TracebackType | None:
    """``trace`` less our frames."""
    theirs = []
    while trace is not None:  # not by recursion: that may be the very error
        if trace.tb_frame.f_code.co_filename not in _OUR_FILES:
            theirs.append(trace)
        trace = trace.tb_next
    rest = None
    for each in reversed(theirs):
        rest = TracebackType(rest, each.tb_frame, each.tb_lasti, each.tb_lineno)
    return rest


def instrument(fetcher: Any, tell: Tell, meter: Meter) -> None:
    """Let ``fetcher`` tell of each batch, also when making it raises."""
    # a bound method in the closure would keep the fetcher, and what it iterates, alive
    owner, fetch = weakref.ref(fetcher), type(fetcher).fetch
    collate, clock = fetcher.collate_fn, perf_counter
    may_end = hasattr(fetcher, "ended")
    unused = Tally()

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
            tally.collate_s += total_s - tally.inner_s
            tally.inner_s = before_s + total_s

    def timed_fetch(index: Any) -> Any:
        nonlocal unused
        tally, batch = unused, None
        itself: Any = owner()
        outer, current.tally = current.tally, tally
        if sampled := not meter.skip:
            sampled = _begun(meter, clock())
        else:
            meter.skip -= 1
        start = clock()
        try:
            batch = fetch(itself, index)
            return batch
        finally:
            end = clock()
            current.tally = outer
            # a list of indices says how many, but at the end of an iterable's data
            whole = type(index) is list and not (may_end and itself.ended)
            samples = len(index) if whole else _count(batch)
            told: tuple[float, ...]
            if tally.seconds:
                told, unused = _in_parts(start, end, tally, samples), Tally()
            else:
                told = (start, end, 0.0, 0.0, 0.0, tally.collate_s, 0, 0, 0, samples)
                tally.collate_s = tally.inner_s = 0.0
            tell(told, _ended(meter, batch) if sampled else None)

    fetcher.fetch, fetcher.collate_fn = timed_fetch, timed_collate


def _in_parts(start: float, end: float, tally: Tally, samples: float) -> tuple[float, ...]:
    seconds = tally.seconds.get
    return (
        start, end, seconds(_READ, 0.0), seconds(_DECODE, 0.0), seconds(_TRANSFORM, 0.0),
        tally.collate_s + seconds(_COLLATE, 0.0), tally.bytes, tally.requests, tally.turns, samples,
    )  # fmt: skip


def _count(batch: Any) -> float:
    try:
        return count_samples(batch)
    except Exception:  # a batch is any object at all
        return nan


def _begun(meter: Meter, now: float) -> bool:
    try:
        meter.begin(now)
    except Exception:
        return False
    return True


def _ended(meter: Meter, batch: Any) -> Sequence[float] | None:
    try:
        return meter.end(batch)
    except Exception:  # a batch is any object: weighing it may raise
        return None
