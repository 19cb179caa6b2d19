"""Inside a process that makes batches: time `fetch` and `collate` of its fetcher.

The data set, its `WorkerInfo` and the loader stay untouched: `DataLoader` reads
``worker_init_fn`` once, when an iterator is made, so a stand-in set around that moment runs in
each worker just before the worker makes its fetcher.
"""

from __future__ import annotations

import logging
import sys
import weakref
from collections.abc import Callable, Sequence
from math import nan
from types import FrameType, TracebackType
from typing import Any

from pipeprof.loaders.instrument.batch_size import batch_nbytes, count_samples
from pipeprof.loaders.instrument.worker_sender import WorkerSender
from pipeprof.log import log_caught, suppress_and_log
from pipeprof.measure import import_hook, requests
from pipeprof.measure.clock import SYSTEM_CLOCK, Clock
from pipeprof.measure.patches import file_reads, fsspec_reads
from pipeprof.measure.patches.all_reads import watch_reads
from pipeprof.measure.request_counts import RequestCounts, RequestTable
from pipeprof.measure.resource_sampler import ResourceSampler
from pipeprof.measure.ring import Ring
from pipeprof.measure.stage_timer import IN_FETCH, Tally, current

_log = logging.getLogger(__name__)

Tell = Callable[[Sequence[float]], Any]
"""Takes what is known of a batch, as in `pipeprof.measure.ring.TOLD`."""

# an Enum's attributes are slow to look up
_READ, _DECODE, _TRANSFORM, _COLLATE = IN_FETCH

_OUR_FILES = (__file__, import_hook.__file__, fsspec_reads.__file__, file_reads.__file__)


class WorkerHook:
    """Stands in for the user's ``worker_init_fn``, which it calls; picklable if that is."""

    def __init__(
        self,
        ring: Ring,
        table: RequestTable,
        user_init: Callable[[int], None] | None,
        whole: bool = False,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        """``whole``: watch all, whatever that costs."""
        self._ring, self._table, self._whole = ring, table, whole
        self._user_init, self._clock = user_init, clock

    def __call__(self, worker: int) -> None:
        # a torch that we do not know must not cost the user the worker: its records are lost then
        with suppress_and_log(_log, f"the stages of worker {worker} are not measured"):
            instrument_worker(worker, self._ring, self._table, self._whole, self._clock)
        if self._user_init is not None:
            self._user_init(worker)


def instrument_worker(
    worker: int, ring: Ring, table: RequestTable, whole: bool, clock: Clock
) -> None:
    """Time every fetcher that this worker process makes for its data set, one per epoch."""
    from torch.utils.data import _DatasetKind, get_worker_info

    kinds: Any = _DatasetKind
    create = kinds.create_fetcher
    info = get_worker_info()
    workers = info.num_workers if info is not None else 1
    sender = WorkerSender(ring.writer(worker), worker, workers, clock)
    meter, counts = ResourceSampler(batch_nbytes, whole, clock), table.row(worker)
    requests.begin_noting()

    def create_timed(kind: int, dataset: Any, *arguments: Any) -> Any:
        fetcher = create(kind, dataset, *arguments)
        # a data set may run a loader of its own, in which we have no business
        if info is None or dataset is info.dataset:
            sender.begin_epoch()
            hooks = FetcherHooks(fetcher, sender.tell, meter, counts, alone=True, clock=clock)
            sender.watch(hooks.watch)
        return fetcher

    kinds.create_fetcher = staticmethod(create_timed)
    loop = _calling_loop()
    if loop is not None:
        hide_our_frames(loop.f_globals)
        sender.attach(loop.f_locals.get("data_queue"))
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


class FetcherHooks:
    """Let a fetcher tell of each batch, also when making it raises. Slots rather than a closure's
    cells, each of which lies elsewhere: what a batch touches is then in few cache lines."""

    __slots__ = ("_alone", "_charged_s", "_clock", "_collate", "_collating_cpu_s", "_collating_s",
                 "_counts", "_fetch", "_may_end", "_meter", "_noted", "_now", "_owner", "_tally",
                 "_tell")  # fmt: skip

    def __init__(
        self,
        fetcher: Any,
        tell: Tell,
        meter: ResourceSampler,
        counts: RequestCounts,
        alone: bool = False,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        """``counts`` takes what the batch asked of storage. ``alone``: its thread, this one, does
        nothing but make batches."""
        # what hangs on the fetcher would keep it, and what it iterates, alive
        self._owner: Any = weakref.ref(fetcher)
        self._fetch, self._collate = type(fetcher).fetch, fetcher.collate_fn
        self._may_end = hasattr(fetcher, "ended")
        self._tell, self._meter, self._counts, self._alone = tell, meter, counts, alone
        self._clock, self._now = clock, clock.now
        self._tally, self._noted = Tally(True, clock), requests.waiting
        self._collating_s = self._collating_cpu_s = nan
        self._charged_s = 0.0
        self.watch(True)

    def watch(self, on: bool) -> None:
        """Put the hooks on, or take them off."""
        fetcher = self._owner()
        if on:
            self._tally = Tally(True, self._clock)
            fetcher.fetch, fetcher.collate_fn = self.fetch, self.collate
        else:
            del fetcher.fetch
            fetcher.collate_fn = self._collate
        if self._alone:
            # to find it takes longer than all else that a plain batch does here
            current.tally = self._tally if on else None

    def collate(self, samples: Any) -> Any:
        # it is the last that a fetcher does: its end is that of the fetch
        self._charged_s = self._tally.inner_s
        if self._tally.cpu_s is not None:
            self._collating_cpu_s = self._tally.cpu_now()
        now, collate = self._now, self._collate
        self._collating_s = now()
        return collate(samples)

    def fetch(self, index: Any) -> Any:
        # as locals: what a slot holds is called more slowly
        now, fetch, tell = self._now, self._fetch, self._tell
        meter, batch, self._collating_s = self._meter, None, nan
        if not self._alone:
            outer, current.tally = current.tally, self._tally
        if sampled := not meter.skip:
            sampled = _begun(meter, now())
            if sampled:
                self._tally.cpu_s, self._collating_cpu_s = {}, nan
        else:
            meter.skip -= 1
        start = now()
        try:
            batch = fetch(self._owner(), index)
            return batch
        finally:
            end = now()
            if not self._alone:
                current.tally = outer
            begun = self._collating_s
            collate_s = end - begun if begun == begun else 0.0
            # a list of indices says how many, but at the end of an iterable's data
            whole = type(index) is list and not (self._may_end and self._owner().ended)
            samples = len(index) if whole else _count(batch)
            if self._tally.seconds or sampled:
                self._tell_more(start, end, collate_s, samples, batch, sampled)
            else:
                tell((start, end, collate_s, samples))
            if self._noted:
                # a store may have noted anything
                with suppress_and_log(_log, "the requests of a batch are not counted"):
                    self._counts.take()

    def _tell_more(
        self, start: float, end: float, collate_s: float, samples: float, batch: Any, sampled: bool
    ) -> None:
        collate_cpu_s = self._clock.cpu_now() - self._collating_cpu_s if sampled else nan
        made, self._tally = self._tally, Tally(True, self._clock)
        if collate_s:
            collate_s -= made.inner_s - self._charged_s
        collate_s += made.seconds.get(_COLLATE, 0.0)
        ours = self._alone and current.tally is not None
        if ours:
            current.tally = None  # what we read now is no batch's
        self._counts.add_tally(made)
        sample = _ended(self._meter, batch) if sampled else ()
        if sample:
            sample = (*sample, *_cpu_of(made), collate_cpu_s)
        self._tell((start, end, collate_s, samples, *_parts(made), *sample))
        if ours:
            current.tally = self._tally


def _parts(tally: Tally) -> tuple[float, ...]:
    seconds = tally.seconds.get
    return (
        seconds(_READ, 0.0), seconds(_DECODE, 0.0), seconds(_TRANSFORM, 0.0),
        tally.bytes, tally.requests, tally.turns,
    )  # fmt: skip


def _cpu_of(tally: Tally) -> tuple[float, ...]:
    """Of reading, decoding and transforming; unknown where something else clocked them."""
    cpu_s = tally.cpu_s or {}
    return tuple(cpu_s.get(name, nan if tally.seconds.get(name) else 0.0) for name in IN_FETCH[:3])


def _count(batch: Any) -> float:
    try:
        return count_samples(batch)
    except Exception as error:  # a batch is any object at all
        log_caught(_log, error, "the samples of a batch are not counted")
        return nan


def _begun(meter: ResourceSampler, now: float) -> bool:
    with suppress_and_log(_log, "the system's counters were not read before a batch"):
        meter.begin(now)
        return True
    return False


def _ended(meter: ResourceSampler, batch: Any) -> Sequence[float]:
    # a batch is any object: weighing it may raise
    with suppress_and_log(_log, "the system's counters were not read after a batch"):
        return meter.end(batch)
    return ()
