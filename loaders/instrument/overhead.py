"""Measure the profiler's own overhead.

The hooks are run after the training, in the same process, around work that takes no time. Their
times are then multiplied by how often they ran.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable
from math import nan
from statistics import median
from time import perf_counter
from typing import Any

from pipeprof.loaders.instrument.batch_size import batch_nbytes
from pipeprof.loaders.instrument.fetcher_hooks import FetcherHooks
from pipeprof.loaders.instrument.inline_observer import InlineObserver
from pipeprof.loaders.instrument.sampling import ALL_TASKS
from pipeprof.loaders.instrument.worker_observer import WorkerObserver
from pipeprof.loaders.instrument.worker_sender import WorkerSender
from pipeprof.log import log_caught
from pipeprof.measure.loader_pass import FLUSH_EVERY
from pipeprof.measure.recorder import Recorder
from pipeprof.measure.request_counts import RequestCounts
from pipeprof.measure.requests import StoreTime
from pipeprof.measure.resource_sampler import SAMPLE_EVERY_S, ResourceSampler
from pipeprof.measure.ring import Ring
from pipeprof.measure.rows import ONLY_TIMED, Source
from pipeprof.measure.stage_timer import Tally, stage, tallied
from pipeprof.model import LoaderConfig, Overhead, Stage

_log = logging.getLogger(__name__)

_ROUNDS = 31
_STAGES_PER_ROUND = 16
"""Stages timed in a row, as in a batch: only the first of them finds the caches cold."""
_EVICTION_DATA = bytearray(4 << 20)
"""Bytes copied before each round to evict the hooks from the caches, as a training step does. Cold
caches make the hooks two to three times as slow."""


def measure_overhead(
    config: LoaderConfig,
    wall_s: float,
    *,
    recorded: int,
    only_timed: int = 0,
    requests: int = 0,
    charges: int = 0,
) -> Overhead:
    """Return the overhead of workers and main process together, against the run's ``wall_s``.

    ``recorded`` batches were recorded in full and ``only_timed`` were not. ``charges`` is how often
    a stage or a read was timed. The result is an upper bound, because the workers' part counts in
    full, although they run in parallel to the training loop.
    """
    if not recorded or not wall_s > 0:
        return Overhead(None, None, "no batch was recorded")
    try:
        per_batch_s = _workers_s() if config.num_workers else _inline_s()
        only_timed_s = _only_timed_s() if only_timed else 0.0
        sample_s = _median_s(_sample())
        request_s = _median_s(_request()) if requests else 0.0
        charge_s = _median_s(_stages) / _STAGES_PER_ROUND if charges else 0.0
    except Exception as error:  # an error here must not cost the user the profile
        log_caught(_log, error, "the profiler's own cost is not known")
        return Overhead(None, None, f"could not be timed: {type(error).__name__}")
    spent_s = per_batch_s * recorded + sample_s * min(recorded, wall_s / SAMPLE_EVERY_S)
    spent_s += request_s * requests + charge_s * charges + only_timed_s * only_timed
    return Overhead(
        spent_s / wall_s,
        spent_s / (recorded + only_timed),
        f"the hooks of a batch, timed {_ROUNDS} times after the run with cold caches, × batches / "
        "wall time; the worker's part in full"
        + ", and its requests" * (requests > 0)
        + ", and each stage or read that was timed" * (charges > 0)
        + ", and what remains of the hooks for batches that were only timed" * (only_timed > 0),
    )


class _Fetcher:
    """Stands in for torch's fetcher, with nothing to fetch."""

    def __init__(self) -> None:
        self.collate_fn: Callable[[Any], Any] = _identity

    def fetch(self, index: Any) -> Any:
        return self.collate_fn(index)


class _Iterator:
    """Stands in for torch's iterator, with nothing to wait for."""

    def __init__(self) -> None:
        self._dataset_fetcher = _Fetcher()
        self._rcvd_idx, self._num_workers = 0, 1

    def _next_index(self) -> int:
        return self._rcvd_idx

    def _get_data(self) -> tuple[int, None]:
        return self._rcvd_idx, None

    def inline(self) -> Any:
        return self._dataset_fetcher.fetch(self._next_index())

    def from_worker(self) -> Any:
        self._next_index()
        _, data = self._get_data()
        self._rcvd_idx += 1
        return data


class _Pickler:
    """Stands in for the pickler of a worker's result queue."""

    @staticmethod
    def dumps(obj: Any) -> Any:
        return obj


class _Queue:
    """Stands in for a worker's result queue, from which nobody takes anything, and for the module
    in which its feeder thread finds the pickler."""

    def __init__(self) -> None:
        self._ForkingPickler = _Pickler

    def put(self, obj: Any, block: bool = True, timeout: float | None = None) -> None:
        self._ForkingPickler.dumps(obj)


def _identity(batch: Any) -> Any:
    return batch


def _inline_s() -> float:
    """Return the seconds that recording a batch takes in a loader without workers."""
    iterator, observer = _Iterator(), InlineObserver()
    observer.attach(iterator)
    try:
        return _main_s(iterator, observer, None, iterator.inline) - _median_s(_Iterator().inline)
    finally:
        observer.close()


def _workers_s() -> float:
    """Return the seconds that recording a batch takes in a worker and in main together."""
    ring = Ring(2 * FLUSH_EVERY)
    ring.set_window(0, ALL_TASKS)
    sender, queue, fetcher, plain = (
        WorkerSender(ring.writer(), 1),
        _Queue(),
        _Fetcher(),
        _Fetcher(),
    )
    sender.attach(queue, queue)
    meter = ResourceSampler(batch_nbytes)
    hooks = FetcherHooks(sender.add_record, meter, RequestCounts())
    hooks.attach(fetcher)
    sender.begin_epoch(0, hooks.set_active)
    worker_s = _median_s(lambda: queue.put((0, fetcher.fetch(0))))
    worker_s -= _median_s(lambda: _Queue().put((0, plain.fetch(0))))
    iterator, observer = _Iterator(), WorkerObserver(ring)
    observer.begin_epoch()
    observer.attach(iterator)
    main_s = _main_s(iterator, observer.source(), observer.key, iterator.from_worker)
    return worker_s + main_s - _median_s(_Iterator().from_worker)


def _only_timed_s() -> float:
    """Return the same seconds for a batch that is only timed, in main alone."""
    source = InlineObserver().source()
    return _main_s(None, source, lambda _: ONLY_TIMED, lambda: None) - _median_s(lambda: None)


def _main_s(
    iterator: Any, source: Source, key: Callable[[Any], Any] | None, step: Callable[[], Any]
) -> float:
    """Return main's seconds per batch, with ``step`` and what `ProfiledIterator` does around it."""
    loader_pass = Recorder().begin()
    loader_pass.source = source

    def profiled() -> None:
        loader_pass.asked_s = loader_pass.now()
        step()
        loader_pass.deliver(key(iterator) if key is not None else None)

    each_s = _median_s(profiled)
    while loader_pass.nth < FLUSH_EVERY:
        profiled()
    start = perf_counter()
    loader_pass.flush()
    return each_s + (perf_counter() - start) / FLUSH_EVERY


def _median_s(call: Callable[[], Any]) -> float:
    """Return the median seconds of a ``call`` with cold caches."""
    durations_s = []
    for _ in range(_ROUNDS):
        bytes(_EVICTION_DATA)
        start = perf_counter()
        call()
        durations_s.append(perf_counter() - start)
    return median(durations_s)


def _request() -> Callable[[], None]:
    """Return a function that counts one request, as of a data set that waits for its store."""
    counts, tally = RequestCounts(), Tally(note_requests=True)

    def request() -> None:
        StoreTime(tally).end()
        counts.add([(0.0, nan, 1.0, 1, 0, 0, False)])

    return request


def _stages() -> None:
    """Time `_STAGES_PER_ROUND` empty stages."""
    with tallied(Tally(note_requests=True)):
        for _ in range(_STAGES_PER_ROUND):
            with stage(Stage.DECODE):
                pass


def _sample() -> Callable[[], None]:
    """Return a function that samples the system's counters for one batch."""
    meter, times = ResourceSampler(batch_nbytes), itertools.count(1.0)

    def sample() -> None:
        meter.begin(next(times))
        meter.end(None, 0.0)

    return sample
