"""Time the ``fetch`` and ``collate_fn`` of torch's fetchers, in the process that fetches batches.

The data set, its `WorkerInfo` and the loader stay untouched. `DataLoader` reads
``worker_init_fn`` once, when an iterator is made. A stand-in that is set just then runs in each
worker right before the worker creates its fetcher.
"""

from __future__ import annotations

import logging
import sys
import weakref
from collections.abc import Callable, Sequence
from functools import partial
from math import nan
from types import FrameType
from typing import Any

import torch.utils.data

from pipeprof.loaders.instrument.batch_size import batch_nbytes, count_samples
from pipeprof.loaders.instrument.wake_up import when_woken
from pipeprof.loaders.instrument.worker_sender import WorkerSender
from pipeprof.log import log_caught, suppress_and_log
from pipeprof.measure import requests
from pipeprof.measure.clock import SYSTEM_CLOCK, Clock
from pipeprof.measure.patches.all_reads import patch_reads
from pipeprof.measure.request_counts import RequestCounts, RequestTable
from pipeprof.measure.resource_sampler import ResourceSampler
from pipeprof.measure.ring import Ring
from pipeprof.measure.stage_timer import IN_FETCH, Tally, current
from pipeprof.measure.tracebacks import cleaning, hide_our_frames

_log = logging.getLogger(__name__)

AddRecord = Callable[[Sequence[float]], Any]
"""Takes the record of one batch, with the fields of `pipeprof.measure.ring.REPORTED_FIELDS`."""

_torchs: Any = torch.utils.data
"""Looked up when a worker starts: an unknown version of torch may lack some of it."""

# what a worker needs lies ready in main, so that a forked one need not make it
with suppress_and_log(_log, "each worker makes what cleans its errors"):
    cleaning(_torchs._utils.worker.ExceptionWrapper)

# an Enum's attributes are slow to look up
_READ, _DECODE, _TRANSFORM, _COLLATE = IN_FETCH


class WorkerHook:
    """Instruments a worker, then calls the user's ``worker_init_fn``; picklable if that is."""

    def __init__(
        self,
        ring: Ring,
        table: RequestTable,
        user_init: Callable[[int], None] | None,
        whole: bool = False,
        clock: Clock = SYSTEM_CLOCK,
        warmup: int = 1,
    ) -> None:
        """``whole`` and ``warmup`` are those of the worker's `ResourceSampler`."""
        self._ring, self._table, self._whole = ring, table, whole
        self._user_init, self._clock, self._warmup = user_init, clock, warmup

    def __call__(self, worker: int) -> None:
        # an unknown version of torch may raise: then records are lost, but the worker runs
        with suppress_and_log(_log, f"the stages of worker {worker} are not measured"):
            meter = ResourceSampler(batch_nbytes, self._whole, self._clock, self._warmup)
            instrument_worker(worker, self._ring, self._table, meter, self._clock)
        if self._user_init is not None:
            self._user_init(worker)


def instrument_worker(
    worker: int, ring: Ring, table: RequestTable, meter: ResourceSampler, clock: Clock
) -> None:
    """Hook every fetcher that this worker process creates for its data set, one per epoch."""
    kinds = _torchs._DatasetKind
    create = kinds.create_fetcher
    info = _torchs.get_worker_info()
    workers = info.num_workers if info is not None else 1
    sender = WorkerSender(ring.writer(worker), worker, workers, clock)
    counts = table.row(worker)
    requests.begin_noting()

    def create_timed(kind: int, dataset: Any, *arguments: Any) -> Any:
        fetcher = create(kind, dataset, *arguments)
        # the data set may iterate a loader inside the worker, which is not measured
        if info is None or dataset is info.dataset:
            hooks = FetcherHooks(
                fetcher, sender.add_record, meter, counts, own_thread=True, clock=clock
            )
            sender.begin_epoch(hooks.set_active)
        return fetcher

    kinds.create_fetcher = staticmethod(create_timed)
    loop = _worker_loop_frame()
    if loop is not None:
        hide_our_frames(loop.f_globals, __file__)
        sender.attach(loop.f_locals.get("data_queue"))
        when_woken(partial(sender.switch, True))
    patch_reads()


def _worker_loop_frame() -> FrameType | None:
    """Return the frame of the calling worker loop, torch's or one that is modelled on it."""
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_code.co_name != "_worker_loop":
        frame = frame.f_back
    return frame


class FetcherHooks:
    """Records each batch that a fetcher fetches, also where the fetch raises. The state lies in
    slots and not in closure cells, so that a batch touches few cache lines."""

    __slots__ = ("_add_record", "_clock", "_collate", "_collate_cpu_start_s", "_collate_start_s",
                 "_counts", "_fetch", "_inner_before_collate_s", "_may_end", "_meter",
                 "_new_requests", "_now", "_own_thread", "_owner", "_tally", "active")  # fmt: skip

    _tally: Tally

    def __init__(
        self,
        fetcher: Any,
        add_record: AddRecord,
        meter: ResourceSampler,
        counts: RequestCounts,
        own_thread: bool = False,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        """Prepare to hook ``fetcher``; ``counts`` receives the storage requests of its batches.
        ``own_thread`` says that the current thread does nothing but fetch batches."""
        # a strong reference would keep the fetcher, and what it iterates, alive
        self._owner: Any = weakref.ref(fetcher)
        self._fetch, self._collate = type(fetcher).fetch, fetcher.collate_fn
        if "fetch" in vars(fetcher):
            self._fetch = OthersFetch(vars(fetcher)["fetch"], self.fetch)
        self._may_end = hasattr(fetcher, "ended")
        self._add_record, self._meter, self._counts = add_record, meter, counts
        self._own_thread, self._clock, self._now = own_thread, clock, clock.now
        self._new_requests = requests.pending_notes
        self._collate_start_s = self._collate_cpu_start_s = nan
        self._inner_before_collate_s = 0.0
        self.active = False

    def set_active(self, on: bool) -> None:
        """Put the hooks in place, or remove them."""
        if on is self.active:
            return
        fetcher, self.active = self._owner(), on
        if fetcher is None:
            return
        if on:
            self._tally = Tally(True, self._clock)
            if isinstance(self._fetch, OthersFetch) and fetcher.fetch != self.fetch:
                self._fetch.others = fetcher.fetch
            fetcher.fetch, fetcher.collate_fn = self.fetch, self.collate
        else:
            if isinstance(self._fetch, OthersFetch):
                fetcher.fetch = self._fetch.others
            else:
                del fetcher.fetch
            fetcher.collate_fn = self._collate
        if self._own_thread:
            # set once, as the thread-local lookup costs more than the rest of a plain batch's hook
            current.tally = self._tally if on else None

    def collate(self, samples: Any) -> Any:
        """Stand in for ``collate_fn``, and note when it starts. Collating is the last thing that a
        fetcher does, so it ends when the fetch ends."""
        self._inner_before_collate_s = self._tally.inner_s
        if self._tally.cpu_s is not None:
            self._collate_cpu_start_s = self._tally.cpu_now()
        now, collate = self._now, self._collate
        self._collate_start_s = now()
        return collate(samples)

    def fetch(self, index: Any) -> Any:
        """Stand in for the fetcher's ``fetch``, and record the batch."""
        # locals, because calling what a slot holds is slower
        now, fetch, add_record = self._now, self._fetch, self._add_record
        meter, batch, self._collate_start_s = self._meter, None, nan
        if not self._own_thread:
            outer, current.tally = current.tally, self._tally
        if sampled := not meter.skip:
            sampled = _begin_sample(meter, now())
            if sampled:
                self._tally.cpu_s, self._collate_cpu_start_s = {}, nan
        else:
            meter.skip -= 1
        # the clock is read next to the batch, as the counters take several µs with cold caches
        cpu_start_s = self._clock.cpu_now() if sampled else nan
        start = now()
        try:
            batch = fetch(self._owner(), index)
            return batch
        finally:
            end = now()
            on_cpu = (cpu_start_s, self._clock.cpu_now()) if sampled else None
            if not self._own_thread:
                current.tally = outer
            collate_start = self._collate_start_s
            collate_s = end - collate_start if collate_start == collate_start else 0.0
            # a list of indices gives the number of samples, except at the end of an iterable
            complete = type(index) is list and not (self._may_end and self._owner().ended)
            samples = len(index) if complete else _count(batch)
            if self._tally.seconds or sampled:
                self._add_full_record(start, end, collate_s, samples, batch, on_cpu)
            else:
                add_record((start, end, collate_s, samples))
            if self._new_requests:
                # a store may have noted anything
                with suppress_and_log(_log, "the requests of a batch are not counted"):
                    self._counts.count_pending()

    def _add_full_record(
        self,
        start: float,
        end: float,
        collate_s: float,
        samples: float,
        batch: Any,
        on_cpu: tuple[float, float] | None,
    ) -> None:
        """Record a batch whose stages were timed, or for which the system was sampled: then
        ``on_cpu`` is what the clock of this thread's CPU time was before and after it."""
        tally, self._tally = self._tally, Tally(True, self._clock)
        if collate_s:
            collate_s -= tally.inner_s - self._inner_before_collate_s
        collate_s += tally.seconds.get(_COLLATE, 0.0)
        suspended = self._own_thread and current.tally is not None
        if suspended:
            current.tally = None  # our own reads from here on belong to no batch
        self._counts.add_tally(tally)
        sample: Sequence[float] = ()
        if on_cpu is not None and (sample := _end_sample(self._meter, batch, *on_cpu)):
            sample = (*sample, *_cpu_of(tally), on_cpu[1] - self._collate_cpu_start_s)
        self._add_record((start, end, collate_s, samples, *_parts(tally), *sample))
        if suspended:
            current.tally = self._tally


class OthersFetch:
    """The ``fetch`` that another profiler has set on a fetcher, as LitData's does. It may remove
    itself, and would remove ours with it."""

    def __init__(self, others: Callable[[Any], Any], ours: Callable[[Any], Any]) -> None:
        self.others, self._ours = others, ours

    def __call__(self, fetcher: Any, index: Any) -> Any:
        try:
            return self.others(index)
        finally:
            present = fetcher.fetch
            if present != self._ours:
                self.others, fetcher.fetch = present, self._ours


def _parts(tally: Tally) -> tuple[float, ...]:
    """Return the fields `pipeprof.measure.ring.STAGE_FIELDS` of a batch."""
    seconds = tally.seconds.get
    return (
        seconds(_READ, 0.0), seconds(_DECODE, 0.0), seconds(_TRANSFORM, 0.0),
        tally.bytes, tally.requests, tally.stage_changes,
    )  # fmt: skip


def _cpu_of(tally: Tally) -> tuple[float, ...]:
    """Return CPU seconds of reading, decoding and transforming; NaN where they were not timed."""
    cpu_s = tally.cpu_s or {}
    return tuple(cpu_s.get(name, nan if tally.seconds.get(name) else 0.0) for name in IN_FETCH[:3])


def _count(batch: Any) -> float:
    try:
        return count_samples(batch)
    except Exception as error:  # a batch is any object at all
        log_caught(_log, error, "the samples of a batch are not counted")
        return nan


def _begin_sample(meter: ResourceSampler, now: float) -> bool:
    """Read the system's counters before a batch; False where that failed."""
    with suppress_and_log(_log, "the system's counters were not read before a batch"):
        meter.begin(now)
        return True
    return False


def _end_sample(
    meter: ResourceSampler, batch: Any, cpu_start_s: float, cpu_end_s: float
) -> Sequence[float]:
    """Return the counters' change over a batch; nothing where reading them failed."""
    # a batch is any object, so taking its size may raise
    with suppress_and_log(_log, "the system's counters were not read after a batch"):
        return meter.end(batch, cpu_end_s - cpu_start_s)
    return ()
