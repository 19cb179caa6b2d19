"""Time the ``fetch`` and ``collate_fn`` of torch's fetchers, in the process that runs them."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Sequence
from math import nan
from typing import Any

from pipeprof.loaders.instrument.batch_size import count_samples
from pipeprof.log import log_caught, suppress_and_log
from pipeprof.measure import requests
from pipeprof.measure.clock import SYSTEM_CLOCK, Clock
from pipeprof.measure.proc_counters import new_bytes
from pipeprof.measure.request_counts import RequestCounts
from pipeprof.measure.resource_sampler import ResourceSampler
from pipeprof.measure.stage_timer import IN_FETCH, Tally, current
from pipeprof.measure.tracebacks import add_our_file

_log = logging.getLogger(__name__)

AddRecord = Callable[[Sequence[float]], Any]
"""Takes the record of one batch, with the fields of `pipeprof.measure.ring.REPORTED_FIELDS`."""

add_our_file(__file__)

# an Enum's attributes are slow to look up
_READ, _DECODE, _TRANSFORM, _COLLATE = IN_FETCH


class FetcherHooks:
    """Records each batch that a fetcher fetches, also where the fetch raises. The state lies in
    slots and not in closure cells, so that a batch touches few cache lines."""

    __slots__ = ("_add_record", "_clock", "_collate", "_collate_cpu_start_s",
                 "_collate_start_bytes", "_collate_start_s", "_counts", "_fetch",
                 "_inner_before_collate_s", "_may_end", "_meter", "_new_requests", "_now",
                 "_own_thread", "_owner", "_tally", "active")  # fmt: skip

    def __init__(
        self,
        add_record: AddRecord,
        meter: ResourceSampler,
        counts: RequestCounts,
        own_thread: bool = False,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        """Prepare to hook a fetcher; ``counts`` receives the storage requests of its batches.
        ``own_thread`` says that the thread which fetches does nothing else."""
        self._add_record, self._meter, self._counts = add_record, meter, counts
        self._own_thread, self._clock, self._now = own_thread, clock, clock.now
        self._new_requests = requests.pending_notes
        self._collate_start_s = self._collate_cpu_start_s = self._collate_start_bytes = nan
        self._inner_before_collate_s = 0.0
        self._tally = Tally(True, clock)
        self.active = False

    def attach(self, fetcher: Any) -> None:
        """Have ``fetcher``, and no other, hooked from the next `set_active` on."""
        # a strong reference would keep the fetcher, and what it iterates, alive
        self._owner: Any = weakref.ref(fetcher)
        self._fetch, self._collate = type(fetcher).fetch, fetcher.collate_fn
        if "fetch" in vars(fetcher):
            self._fetch = OthersFetch(vars(fetcher)["fetch"], self.fetch)
        self._may_end = hasattr(fetcher, "ended")

    def set_active(self, on: bool) -> None:
        """Put the hooks in place, or remove them."""
        if on is self.active:
            return
        fetcher, self.active = self._owner(), on
        if fetcher is None:
            return
        if on:
            if isinstance(self._fetch, OthersFetch) and fetcher.fetch != self.fetch:
                self._fetch.others = fetcher.fetch
            fetcher.fetch, fetcher.collate_fn = self.fetch, self.collate
        else:
            if isinstance(self._fetch, OthersFetch):
                fetcher.fetch = self._fetch.others
            else:
                del fetcher.fetch
            fetcher.collate_fn = self._collate
            self._tally = Tally(True, self._clock)
        if self._own_thread:
            # set once, as the thread-local lookup costs more than the rest of a plain batch's hook
            current.tally = self._tally if on else None

    def collate(self, samples: Any) -> Any:
        """Stand in for ``collate_fn``, and note when it starts. Collating is the last thing that a
        fetcher does, so it ends when the fetch ends."""
        self._inner_before_collate_s = self._tally.inner_s
        if self._tally.cpu_s is not None:
            self._collate_start_bytes = new_bytes()
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
                self._tally.cpu_s = {}
                self._collate_cpu_start_s = self._collate_start_bytes = nan
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
            collated = new_bytes() - self._collate_start_bytes if sampled else nan
            if not self._own_thread:
                current.tally = outer
            collate_start = self._collate_start_s
            collate_s = end - collate_start if collate_start == collate_start else 0.0
            # a list of indices gives the number of samples, except at the end of an iterable
            complete = type(index) is list and not (self._may_end and self._owner().ended)
            samples = len(index) if complete else _count(batch)
            if self._tally.seconds or sampled:
                timed = (start, end, collate_s, samples)
                self._add_full_record(timed, batch, on_cpu, collated)
            else:
                add_record((start, end, collate_s, samples))
            if self._new_requests:
                # a store may have noted anything
                with suppress_and_log(_log, "the requests of a batch are not counted"):
                    self._counts.count_pending()

    def _add_full_record(
        self,
        timed: tuple[float, float, float, float],
        batch: Any,
        on_cpu: tuple[float, float] | None,
        collated: float,
    ) -> None:
        """Record a batch whose stages were timed, or for which the system was sampled. Then
        ``on_cpu`` is what the clock of this thread's CPU time was before and after it.
        ``collated`` are the bytes of memory that the kernel provided while it was collated."""
        start, end, collate_s, samples = timed
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
            collate_cpu_s = on_cpu[1] - self._collate_cpu_start_s
            sample = (*sample, *_cpu_of(tally), collate_cpu_s, collated)
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
