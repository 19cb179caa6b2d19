"""Start the passes over a loader with our hooks in place."""

from __future__ import annotations

import inspect
import logging
import sys
import weakref
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from torch.utils.data import DataLoader

from pipeprof.loaders.instrument import guarded_start, inside
from pipeprof.loaders.instrument.attributes import safe_getattr
from pipeprof.loaders.instrument.frames import read_our_sources
from pipeprof.loaders.instrument.function_calls import FunctionCalls
from pipeprof.loaders.instrument.inline_observer import (
    GeneratorObserver,
    HostObserver,
    InlineObserver,
    Observer,
    StagesObserver,
)
from pipeprof.loaders.instrument.late_start import makes_it_later
from pipeprof.loaders.instrument.loader_info import LoaderInfo
from pipeprof.loaders.instrument.sampling import SamplingSchedule
from pipeprof.loaders.instrument.torchs_iterator import is_torchs, torchs_within
from pipeprof.loaders.instrument.worker_hook import WorkerHook
from pipeprof.loaders.instrument.worker_observer import WorkerObserver, why_unobserved
from pipeprof.loaders.instrument.worker_starts import WorkerStarts, workers_are_threads
from pipeprof.loaders.pipelines.observer import PipelineObserver
from pipeprof.log import log_caught
from pipeprof.measure.clock import Clock
from pipeprof.measure.loader_pass import FLUSH_EVERY
from pipeprof.measure.request_counts import RequestTable, RequestTotals
from pipeprof.measure.ring import Ring

_log = logging.getLogger(__name__)

_SPARE_SLOTS = FLUSH_EVERY + 64
"""Slots of a ring for records that main has not read yet, beyond those of prefetched batches."""


class Outer(Protocol):
    """A pass over a loader that may iterate a DataLoader, and then steps aside."""

    @property
    def has_stepped_aside(self) -> bool: ...

    def watched(self, make: Callable[[], Any]) -> Any:
        """Return ``make()``. A DataLoader that is begun to be iterated in it is measured."""
        ...


class ObservedStart:
    """Starts all passes over one loader, each with the observer that fits the loader. With
    ``whole`` every batch is recorded in full."""

    def __init__(self, whole: bool, clock: Clock) -> None:
        self._whole, self._clock = whole, clock
        self.info = LoaderInfo()
        """The loader of the present pass."""
        self.schedule = SamplingSchedule(whole, clock)
        self.worker_starts = WorkerStarts(clock)
        self.requests = RequestTotals()
        self.pipeline = PipelineObserver(clock)
        self.missing: dict[str, str] = {}
        """Stages that could not be observed → reason."""
        self._last: Callable[[], Any] = lambda: None
        """A weak reference to torch's iterator of the last pass."""
        self._last_observer: WorkerObserver | None = None
        """Of that iterator, where it has workers."""

    def start(
        self, loader: Any, start: Callable[[], Iterator[Any]]
    ) -> tuple[Iterator[Any], Observer | None]:
        """Return the iterator of a new pass over one of torch's loaders, and an observer that is
        attached to it; ``None`` where that is possible only with the first batch."""
        if loader.num_workers == 0:
            return self._observe_inline(loader, start())
        observer = self.observer_of(safe_getattr(loader, "_iterator"))
        if observer is not None and loader.persistent_workers:
            self.schedule.begin_pass(observer.ring, self.info.capacity)
            observer.set_active(True)  # a hook notices that the workers begin an epoch
            iterator = start()
            return iterator, None if makes_it_later(iterator) else observer
        return self.start_hooked(loader, start)

    def start_other(
        self, loader: Any, start: Callable[[], Iterator[Any]], outer: Outer
    ) -> tuple[Iterator[Any], Observer | None]:
        """Return the iterator of the pass ``outer`` over any other loader, and an observer. That
        has the stages of a known library, or what a generator does. It is ``None`` if the pass has
        stepped aside for a DataLoader that the iterator iterates."""
        opened = self.pipeline.begin(loader)
        iterator = start() if opened.is_attached else outer.watched(start)
        if outer.has_stepped_aside:
            opened.close()
            return iterator, None
        opened.look_at(iterator)
        makes_here = inspect.isgenerator(iterator) or isinstance(iterator, FunctionCalls)
        if makes_here and not opened.may_find_more():
            opened.close()
            made_here = GeneratorObserver(iterator, self._whole, self._clock)
            self.requests.add(made_here.requests)
            return iterator, made_here
        self.unobserved(_why_outside(loader))
        return iterator, StagesObserver(self.info.batch_size, iterator, opened)

    @property
    def last_iterator(self) -> Any:
        """Torch's iterator of the last pass, while it exists."""
        return self._last()

    def observer_of(self, iterator: Any) -> WorkerObserver | None:
        """Return the observer that is already attached to ``iterator``, if any."""
        iterator = torchs_within(iterator)
        return self._last_observer if iterator is not None and iterator is self._last() else None

    def observe_again(self, loader: DataLoader[Any], iterator: Any) -> Observer | None:
        """Observe another pass of an iterator that ``loader`` has kept."""
        if iterator is not None and loader.num_workers == 0:
            return self._observe_inline(loader, iterator)[1]
        return self.observer_of(iterator)

    def _observe_inline(
        self, loader: DataLoader[Any], iterator: Iterator[Any]
    ) -> tuple[Iterator[Any], Observer | None]:
        if makes_it_later(iterator):
            return iterator, None
        observer = InlineObserver(self._whole, self._clock)
        torchs = torchs_within(iterator)
        try:
            observer.attach(torchs)
        except Exception as error:
            log_caught(_log, error, "the stages of a loader without workers are not measured")
            return iterator, self.unobserved(
                f"{type(loader).__name__} makes an iterator of its own"
            )
        self._last = weakref.ref(torchs)
        self.requests.add(observer.requests)
        return iterator, observer

    def start_hooked(
        self, loader: DataLoader[Any], start: Callable[[], Iterator[Any]]
    ) -> tuple[Iterator[Any], Observer | None]:
        """Start workers with our hook, unless they are running already."""
        running = torchs_within(safe_getattr(loader, "_iterator"))
        if workers_are_threads(loader):
            return start(), self.unobserved("its workers are threads of the training process")
        try:
            ring = Ring(loader.num_workers * (loader.prefetch_factor or 2) + _SPARE_SLOTS)
            self.schedule.begin_pass(ring, self.info.capacity)
            table = RequestTable(loader.num_workers)
        except OSError as error:
            return start(), self.unobserved(f"no shared memory for the workers' records: {error}")
        observer = WorkerObserver(ring, self._clock)
        observer.begin_epoch()
        user_init = loader.worker_init_fn
        prefetched = loader.prefetch_factor or 2  # by each worker before main takes any
        loader.worker_init_fn = WorkerHook(
            ring, table, user_init, loader.num_workers, self._whole, self._clock, prefetched
        )
        read_our_sources(sys._getframe(), inside.__file__, guarded_start.__file__)
        try:
            with self.worker_starts.measured():
                iterator = start()
        finally:
            loader.worker_init_fn = user_init
        if makes_it_later(iterator):
            self.schedule.undo_begin()
            return iterator, None
        attached = self.observer_of(iterator)
        if attached is not None:
            return iterator, attached
        torchs = torchs_within(iterator)
        reason = why_unobserved(loader, torchs, running)
        if reason is not None:
            return iterator, self.unobserved(reason)
        observer.attach(torchs)
        self.requests.add(table)
        self._last, self._last_observer = weakref.ref(torchs), observer
        return iterator, observer

    def hooked_state_dict(self, loader: Any, state_dict: Callable[[], Any]) -> Any:
        """Return ``state_dict()`` of ``loader``, and hook the workers that it may start."""
        started = safe_getattr(loader, "_iterator") is not None
        if started or not isinstance(loader, DataLoader) or not loader.num_workers:
            return state_dict()
        state = None

        def start() -> Any:
            nonlocal state
            state = state_dict()
            return loader._iterator

        self.start_hooked(loader, start)
        return state

    def unobserved(self, reason: str) -> HostObserver:
        """Return an observer without hooks, and report ``reason`` for the stages it misses."""
        for stage in ("fetch", "collate", "transfer"):
            self.missing[stage] = reason
        return HostObserver(self.info.batch_size)


def _why_outside(loader: Any) -> str:
    """Return why ``loader`` is not measured from inside, and what to do about it."""
    if is_torchs(loader):
        return "it was iterated before it was wrapped: wrap the DataLoader itself"
    kind = type(loader)
    reason = f"{kind.__name__} is not a torch DataLoader"
    passes_on = kind.__module__ in ("builtins", "itertools") and hasattr(kind, "__next__")
    return f"{reason}: if it iterates one, wrap that" if passes_on else reason
