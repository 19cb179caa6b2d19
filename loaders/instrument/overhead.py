"""What our own hooks cost: the very hooks, timed here and now around work that takes no time, times
how often they ran."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable
from math import nan
from statistics import median
from threading import Lock
from time import perf_counter
from typing import Any

from pipeprof.loaders.instrument.batch_size import batch_nbytes
from pipeprof.loaders.instrument.inline_observer import InlineObserver
from pipeprof.loaders.instrument.worker_hooks import FetcherHooks
from pipeprof.loaders.instrument.worker_observer import WorkerObserver, clocked
from pipeprof.loaders.instrument.worker_sender import WorkerSender
from pipeprof.log import log_caught
from pipeprof.measure.loader_pass import FLUSH_EVERY
from pipeprof.measure.recorder import Recorder
from pipeprof.measure.request_counts import RequestCounts
from pipeprof.measure.requests import StoreTime
from pipeprof.measure.resource_sampler import SAMPLE_EVERY_S, ResourceSampler
from pipeprof.measure.ring import Ring
from pipeprof.measure.rows import Source
from pipeprof.measure.stage_timer import Tally, stage, tallied
from pipeprof.model import LoaderConfig, Overhead, Stage

_log = logging.getLogger(__name__)

_ROUNDS = 31
_IN_A_ROW = 16
"""Stages, since those of a batch are clocked one soon after another: only the first finds the
caches cold."""
_ELSEWHERE = bytearray(4 << 20)
"""Copied between two rounds, as a training step would: the hooks' code and data are then no longer
at hand, which makes them two or three times as dear."""


def measure_overhead(
    config: LoaderConfig,
    wall_s: float,
    *,
    batches: int,
    unwatched: int = 0,
    requests: int = 0,
    charges: int = 0,
) -> Overhead:
    """Of worker and main together, against the run's ``wall_s``, for so many ``batches`` that were
    watched, and others that were not; ``charges``: how often a stage or a read was clocked.

    The worker's part is charged in full, though workers run beside the training loop: an upper
    bound.
    """
    if not batches or not wall_s > 0:
        return Overhead(None, None, "no batch was seen")
    try:
        per_batch_s = _workers_s() if config.num_workers else _inline_s()
        clocked_s = _clocked_s() if unwatched else 0.0
        sample_s = _median_s(_sample())
        request_s = _median_s(_request()) if requests else 0.0
        charge_s = _median_s(_stages) / _IN_A_ROW if charges else 0.0
    except Exception as error:  # what we cannot time must not cost the user the profile
        log_caught(_log, error, "the profiler's own cost is not known")
        return Overhead(None, None, f"could not be timed: {type(error).__name__}")
    spent_s = per_batch_s * batches + sample_s * min(batches, wall_s / SAMPLE_EVERY_S)
    spent_s += request_s * requests + charge_s * charges + clocked_s * unwatched
    return Overhead(
        spent_s / wall_s,
        spent_s / (batches + unwatched),
        f"the hooks of a batch, timed {_ROUNDS} times after the run with cold caches, × batches / "
        "wall time; the worker's part in full"
        + ", and its requests" * (requests > 0)
        + ", and each stage or read that was clocked" * (charges > 0)
        + ", and what is left of them where batches are only clocked" * (unwatched > 0),
    )


class _Fetcher:
    """Stands for torch's, with nothing to fetch."""

    def __init__(self) -> None:
        self.collate_fn: Callable[[Any], Any] = _same

    def fetch(self, index: Any) -> Any:
        return self.collate_fn(index)


class _Iterator:
    """Stands for torch's, with nothing to wait for."""

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


class _Queue:
    """Stands for that of a worker's results, of which nobody takes any."""

    def __init__(self) -> None:
        self._wlock = Lock()

    def put(self, obj: Any, block: bool = True, timeout: float | None = None) -> None:
        self._wlock.acquire()
        self._wlock.release()


def _same(batch: Any) -> Any:
    return batch


def _inline_s() -> float:
    iterator, observer = _Iterator(), InlineObserver()
    observer.attach(iterator)
    try:
        return _main_s(iterator, observer, None, iterator.inline) - _median_s(_Iterator().inline)
    finally:
        observer.leave()


def _workers_s() -> float:
    ring = Ring(2 * FLUSH_EVERY)
    sender, queue, fetcher, bare = (
        WorkerSender(ring.writer(0), 0, 1),
        _Queue(),
        _Fetcher(),
        _Fetcher(),
    )
    sender.begin_epoch()
    sender.attach(queue)
    FetcherHooks(fetcher, sender.tell, ResourceSampler(batch_nbytes), RequestCounts())
    made_s = _median_s(lambda: queue.put((0, fetcher.fetch(0))))
    made_s -= _median_s(lambda: _Queue().put((0, bare.fetch(0))))
    iterator, observer = _Iterator(), WorkerObserver(ring)
    observer.begin_epoch()
    observer.attach(iterator)
    main_s = _main_s(iterator, observer.source(), observer.key, iterator.from_worker)
    return made_s + main_s - _median_s(_Iterator().from_worker)


def _clocked_s() -> float:
    """What is left of the hooks where a batch is only clocked, in a worker and in main."""
    sender, queue = WorkerSender(Ring(1).writer(0), 0, 1), _Queue()
    sender.attach(queue)
    sent_s = _median_s(lambda: queue.put((0, None))) - _median_s(lambda: _Queue().put((0, None)))
    observer = WorkerObserver(Ring(1))
    main_s = _main_s(None, observer.source(), clocked, lambda: None)
    return sent_s + main_s - _median_s(lambda: None)


def _main_s(
    iterator: Any, source: Source, key: Callable[[Any], Any] | None, step: Callable[[], Any]
) -> float:
    """Main's part of a batch, as `ProfiledIterator` does it, around ``step``."""
    turn = Recorder().begin()
    turn.source = source

    def profiled() -> None:
        turn.asked_s = turn.now()
        step()
        turn.deliver(key(iterator) if key is not None else None)

    each_s = _median_s(profiled)
    while turn.nth < FLUSH_EVERY:
        profiled()
    start = perf_counter()
    turn.flush()
    return each_s + (perf_counter() - start) / FLUSH_EVERY


def _median_s(call: Callable[[], Any]) -> float:
    """Seconds a ``call``, with cold caches."""
    took = []
    for _ in range(_ROUNDS):
        bytes(_ELSEWHERE)
        start = perf_counter()
        call()
        took.append(perf_counter() - start)
    return median(took)


def _request() -> Callable[[], None]:
    """One of a data set that waits for its store."""
    counts, tally = RequestCounts(), Tally(noting=True)

    def request() -> None:
        StoreTime(tally).end()
        counts.add([(0.0, nan, 1.0, 1, 0, 0, False)])

    return request


def _stages() -> None:
    with tallied(Tally(noting=True)):
        for _ in range(_IN_A_ROW):
            with stage(Stage.DECODE):
                pass


def _sample() -> Callable[[], None]:
    """A look at the machine."""
    meter, later = ResourceSampler(batch_nbytes), itertools.count(1.0)

    def sample() -> None:
        meter.begin(next(later))
        meter.end(None)

    return sample
