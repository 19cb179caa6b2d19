"""What our own hooks cost: the very hooks, timed here and now around work that takes no time, times
how often they ran."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from math import nan
from statistics import median
from time import perf_counter
from typing import Any

from pipeprof.loaders.batches import weigh
from pipeprof.loaders.hook import instrument
from pipeprof.loaders.observe import InlineObserver, Observer
from pipeprof.loaders.observe_workers import WorkersObserver
from pipeprof.measure.meter import SAMPLE_EVERY_S, Meter
from pipeprof.measure.recorder import FLUSH_EVERY, Recorder
from pipeprof.measure.request_counts import RequestCounts
from pipeprof.measure.requests import StoreTime
from pipeprof.measure.ring import Ring
from pipeprof.measure.spans import Tally
from pipeprof.model import LoaderConfig, Overhead

_ROUNDS = 31
_ELSEWHERE = bytearray(4 << 20)
"""Copied between two rounds, as a training step would: the hooks' code and data are then no longer
at hand, which makes them two or three times as dear."""


def measure_overhead(config: LoaderConfig, batches: int, requests: int, wall_s: float) -> Overhead:
    """Of worker and main together, against the run's ``wall_s``.

    The worker's part is charged in full, though workers run beside the training loop: an upper
    bound.
    """
    if not batches or not wall_s > 0:
        return Overhead(None, None, "no batch was seen")
    try:
        per_batch_s = _workers_s() if config.num_workers else _inline_s()
        sample_s = _median_s(_sample())
        request_s = _median_s(_request()) if requests else 0.0
    except Exception as error:  # what we cannot time must not cost the user the profile
        return Overhead(None, None, f"could not be timed: {type(error).__name__}")
    spent_s = per_batch_s * batches + sample_s * min(batches, wall_s / SAMPLE_EVERY_S)
    spent_s += request_s * requests
    return Overhead(
        spent_s / wall_s,
        spent_s / batches,
        f"the hooks of a batch, timed {_ROUNDS} times after the run with cold caches, × batches / "
        "wall time; the worker's part in full" + ", and its requests" * (requests > 0),
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
        self._task_info = dict.fromkeys(range(FLUSH_EVERY), (0,))
        self._rcvd_idx = 0

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


def _same(batch: Any) -> Any:
    return batch


def _inline_s() -> float:
    iterator, observer = _Iterator(), InlineObserver()
    observer.attach(iterator)
    try:
        return _main_s(iterator, observer, iterator.inline) - _median_s(_Iterator().inline)
    finally:
        observer.leave()


def _workers_s() -> float:
    ring = Ring(1, 2 * FLUSH_EVERY)
    writer, fetcher, bare = ring.writer(0), _Fetcher(), _Fetcher()
    writer.begin_epoch()
    instrument(fetcher, writer.tell, Meter(weigh), RequestCounts())
    made_s = _median_s(lambda: fetcher.fetch(0)) - _median_s(lambda: bare.fetch(0))
    iterator, observer = _Iterator(), WorkersObserver(ring)
    observer.begin_epoch()
    observer.attach(iterator)
    main_s = _main_s(iterator, observer, iterator.from_worker)
    return made_s + main_s - _median_s(_Iterator().from_worker)


def _main_s(iterator: Any, observer: Observer, step: Callable[[], Any]) -> float:
    """Main's part of a batch, as `ProfiledIterator` does it, around ``step``."""
    turn = Recorder().begin()
    turn.source = observer

    def profiled() -> None:
        turn.ask()
        step()
        turn.deliver(observer.key(iterator, None) if observer.key is not None else None)

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


def _sample() -> Callable[[], None]:
    """A look at the machine."""
    meter, later = Meter(weigh), itertools.count(1.0)

    def sample() -> None:
        meter.begin(next(later))
        meter.end(None)

    return sample
