"""Instrument a worker of torch's loaders when it starts.

The data set, its `WorkerInfo` and the loader stay untouched. `DataLoader` reads
``worker_init_fn`` once, when an iterator is made. A stand-in that is set just then runs in each
worker right before the worker creates its fetcher.

The worker's first batch waits for all of this. A forked worker copies each page of memory that it
writes to, and every object that it uses is one, as its references are counted. So what can be made
in the main process is made there, and the worker uses few objects.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from functools import partial
from types import FrameType
from typing import Any

import torch.utils.data

from pipeprof.loaders.instrument.batch_size import batch_nbytes
from pipeprof.loaders.instrument.fetcher_hooks import FetcherHooks
from pipeprof.loaders.instrument.wake_up import when_woken
from pipeprof.loaders.instrument.worker_sender import WorkerSender
from pipeprof.log import suppress_and_log
from pipeprof.measure.clock import SYSTEM_CLOCK, Clock
from pipeprof.measure.patches.all_reads import prepare_reads
from pipeprof.measure.request_counts import RequestCounts, RequestTable
from pipeprof.measure.requests import begin_noting
from pipeprof.measure.resource_sampler import ResourceSampler
from pipeprof.measure.ring import Ring
from pipeprof.measure.tracebacks import add_our_file, cleaning, hide_our_frames

_log = logging.getLogger(__name__)

_torchs: Any = torch.utils.data
"""Looked up when a worker starts: an unknown version of torch may lack some of it."""

add_our_file(__file__)
with suppress_and_log(_log, "each worker makes what cleans its errors"):
    cleaning(_torchs._utils.worker.ExceptionWrapper)


class WorkerHook:
    """Instruments a worker, then calls the user's ``worker_init_fn``; picklable if that is."""

    def __init__(
        self,
        ring: Ring,
        table: RequestTable,
        user_init: Callable[[int], None] | None,
        workers: int,
        whole: bool = False,
        clock: Clock = SYSTEM_CLOCK,
        warmup: int = 1,
    ) -> None:
        """``whole`` and ``warmup`` are those of the worker's `ResourceSampler`."""
        self._arguments = ring, table, user_init, workers, whole, clock, warmup
        self._user_init, self._table, self._clock = user_init, table, clock
        self._sender = WorkerSender(ring.writer(), workers, clock)
        self._meter = ResourceSampler(batch_nbytes, whole, clock, warmup)
        self._counts = RequestCounts(self._open_cells)
        self._first: FetcherHooks | None = self._fetcher_hooks()
        """Those of the first fetcher."""
        self._wake = partial(self._sender.switch, True)
        with suppress_and_log(_log, "a worker's reads are not recorded"):
            self._patch_reads = prepare_reads()

    def __reduce__(self) -> Any:
        return WorkerHook, self._arguments

    def __call__(self, worker: int) -> None:
        # an unknown version of torch may raise: then records are lost, but the worker runs
        with suppress_and_log(_log, "the stages of a worker are not measured"):
            self._instrument(worker)
        if self._user_init is not None:
            self._user_init(worker)

    def _instrument(self, worker: int) -> None:
        """Hook every fetcher that this worker process creates for its data set, one per epoch."""
        self._worker = worker
        kinds = _torchs._DatasetKind
        self._create = kinds.create_fetcher
        begin_noting()
        kinds.create_fetcher = self._create_timed
        loop = _worker_loop_frame()
        if loop is not None:
            hide_our_frames(loop.f_globals)
            self._sender.attach(loop.f_locals.get("data_queue"))
            when_woken(self._wake)
        self._patch_reads()

    def _create_timed(self, kind: int, dataset: Any, *arguments: Any) -> Any:
        fetcher = self._create(kind, dataset, *arguments)
        info = _torchs.get_worker_info()
        # the data set may iterate a loader inside the worker, which is not measured
        if info is None or dataset is info.dataset:
            hooks, self._first = self._first or self._fetcher_hooks(), None
            hooks.attach(fetcher)
            self._sender.begin_epoch(self._worker, hooks.set_active)
        return fetcher

    def _fetcher_hooks(self) -> FetcherHooks:
        add_record = self._sender.add_record
        return FetcherHooks(add_record, self._meter, self._counts, True, self._clock)

    def _open_cells(self) -> Any:
        return self._table.cells(self._worker)


def _worker_loop_frame() -> FrameType | None:
    """Return the frame of the calling worker loop, torch's or one that is modelled on it."""
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_code.co_name != "_worker_loop":
        frame = frame.f_back
    return frame
