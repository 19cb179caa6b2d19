"""What our own hooks cost: the very hooks, timed here and now on work that takes no time, times
how often they ran."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from time import perf_counter
from typing import Any

from pipeprof.loaders.batches import weigh
from pipeprof.loaders.hook import instrument
from pipeprof.loaders.observe import InlineObserver, Observer, WorkersObserver
from pipeprof.loaders.sender import Sender
from pipeprof.measure.meter import SAMPLE_EVERY_S, Meter
from pipeprof.measure.recorder import Recorder
from pipeprof.measure.ring import Ring
from pipeprof.model import LoaderConfig, Overhead

_ROUNDS = 200
_REPEATS = 5


def measure_overhead(config: LoaderConfig, batches: int, wall_s: float) -> Overhead:
    """Of worker and main together, against the run's ``wall_s``.

    The worker's part is charged in full, though workers run beside the training loop: an upper
    bound.
    """
    if not batches or not wall_s > 0:
        return Overhead(None, None, "no batch was seen")
    try:
        per_batch_s = _inline_s() if not config.num_workers else _workers_s()
    except Exception as error:  # what we cannot time must not cost the user the profile
        return Overhead(None, None, f"could not be timed: {type(error).__name__}")
    samples = min(batches, wall_s / SAMPLE_EVERY_S)
    spent_s = per_batch_s * batches + _sample_s() * samples
    return Overhead(
        spent_s / wall_s,
        spent_s / batches,
        f"the hooks of a batch, timed {_ROUNDS * _REPEATS} times after the run, × batches / wall "
        "time; the worker's part in full",
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
        self._task_info = dict.fromkeys(range(_ROUNDS), (0,))
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
    return _main_s(iterator, observer, iterator.inline) - _bare_s(_Iterator().inline)


def _workers_s() -> float:
    ring = Ring(1, _ROUNDS)
    sender, fetcher, bare = Sender(0, ring), _Fetcher(), _Fetcher()
    sender.begin_epoch()
    instrument(fetcher, sender.tell, Meter(weigh))
    made_s = _bare_s(lambda: fetcher.fetch(0)) - _bare_s(lambda: bare.fetch(0))
    iterator, observer = _Iterator(), WorkersObserver(ring)
    observer.begin_epoch()
    observer.attach(iterator)
    return (
        made_s
        + _main_s(iterator, observer, iterator.from_worker)
        - _bare_s(_Iterator().from_worker)
    )


def _main_s(iterator: Any, observer: Observer, step: Callable[[], Any]) -> float:
    """Main's part of a batch, as `ProfiledIterator` does it, around ``step``."""
    turn = Recorder().begin()

    def profiled() -> None:
        turn.ask()
        step()
        turn.deliver(1, observer.origin(iterator), observer.expects_record)

    return _bare_s(profiled, lambda: setattr(iterator, "_rcvd_idx", 0))


def _bare_s(call: Callable[[], Any], prepare: Callable[[], None] = lambda: None) -> float:
    """Seconds a ``call``: the best of several rounds."""
    best = float("inf")
    for _ in range(_REPEATS):
        prepare()
        start = perf_counter()
        for _ in range(_ROUNDS):
            call()
        best = min(best, (perf_counter() - start) / _ROUNDS)
    return best


def _sample_s() -> float:
    """A look at the machine."""
    meter, later = Meter(weigh), itertools.count(1.0)

    def sample() -> None:
        meter.begin(next(later))
        meter.end(None)

    return _bare_s(sample)
