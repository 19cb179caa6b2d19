"""In the main process: which worker made each batch, how it came, what the worker said of it.

One observer per form of torch's iterator. Each hangs on the iterator by instance attributes that
hold no reference back, so that it is dropped, and its workers end, just as without us.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from itertools import chain
from math import nan
from typing import Any, Protocol

import numpy as np

from pipeprof.loaders.instrument.batch_size import batch_nbytes, count_samples
from pipeprof.loaders.instrument.worker_hooks import FetcherHooks
from pipeprof.measure.clock import SYSTEM_CLOCK, Clock
from pipeprof.measure.loader_pass import FLUSH_EVERY
from pipeprof.measure.patches.all_reads import reads_watched
from pipeprof.measure.request_counts import RequestCounts
from pipeprof.measure.requests import begin_noting, end_noting
from pipeprof.measure.resource_sampler import ResourceSampler
from pipeprof.measure.ring import IN_PARTS, PLAIN, TOLD
from pipeprof.measure.rows import SEEN, Floats, Source, as_array, nothing_known

_WORKER, _PINNED, _SAMPLES = (SEEN.index(name) for name in ("worker", "pinned_s", "samples"))
_TOLD = SEEN.index(TOLD[0])
_START, _END = TOLD.index("fetch_start_s"), TOLD.index("fetch_end_s")
_PARTS = slice(len(PLAIN), len(PLAIN) + len(IN_PARTS))


class Observer(Protocol):
    @property
    def key(self) -> Callable[[Any], Any] | None:
        """Tells the batch that was just delivered to `source`. Takes the iterator, or the batch
        where `of_batch`; ``None`` where the moments are enough."""
        ...

    of_batch: bool

    def source(self) -> Source:
        """Of the pass that begins now."""
        ...

    def leave(self) -> None:
        """The pass has ended, or was left."""
        ...


class HostObserver:
    """Sees nothing but that a batch came: for iterables that cannot be hooked."""

    of_batch = True

    def __init__(self, batch_size: Any = None) -> None:
        self._batch_size = batch_size

    def key(self, batch: Any) -> Any:
        return count_samples(batch, self._batch_size)

    def source(self) -> Source:
        return self

    def columns(self, keys: list[Any], moments: Floats) -> tuple[Floats, int]:
        table = nothing_known(len(keys))
        table[:, _SAMPLES] = [nan if key is None else key for key in keys]
        return table, 0

    def leave(self) -> None:
        pass


_ROOM = 2 * FLUSH_EVERY


class InlineObserver:
    """``num_workers=0``: the fetcher lives in this process. A batch was fetched between the moments
    at which it was asked for and delivered."""

    key, of_batch = None, False

    def __init__(self, whole: bool = False, clock: Clock = SYSTEM_CLOCK) -> None:
        """``whole``: watch all, whatever that costs."""
        self._clock, self._meter = clock, ResourceSampler(batch_nbytes, whole, clock)
        self._told: deque[Sequence[float]] = deque(maxlen=_ROOM)
        """Of the batches last fetched."""
        self.requests = RequestCounts()
        """Those of this pass."""
        self._pins = False
        self._watching = ExitStack()

    def attach(self, iterator: Any) -> None:
        fetcher, tell = iterator._dataset_fetcher, self._told.append
        FetcherHooks(fetcher, tell, self._meter, self.requests, clock=self._clock)
        self._pins = bool(getattr(iterator, "_pin_memory", False))
        self._watching.enter_context(reads_watched())
        begin_noting()
        self._watching.callback(end_noting)

    def source(self) -> Source:
        return self

    def columns(self, keys: list[Any], moments: Floats) -> tuple[Floats, int]:
        table = nothing_known(len(keys))
        table[:, _WORKER] = -1
        if self._pins:
            table[:, _PINNED] = moments[:, 1]
        told = _table(list(self._told))
        places = np.searchsorted(told[:, _START], moments[:, 0])
        seen = places < len(told)
        seen[seen] = told[places[seen], _END] <= moments[seen, 1]
        rows = slice(None) if seen.all() else seen  # the former is faster
        table[rows, _TOLD:] = told[places[rows]]
        for _ in range(places[seen].max(initial=-1) + 1):
            self._told.popleft()
        return table, int((~seen).sum())

    def leave(self) -> None:
        self._watching.close()


def _table(told: list[Sequence[float]]) -> Floats:
    """[batches, `TOLD`]"""
    count = len(told)
    lengths = np.fromiter(map(len, told), np.intp, count)
    flat = as_array(list(chain.from_iterable(told)))
    starts = np.cumsum(lengths) - lengths
    table = np.full((count, len(TOLD)), nan)
    table[:, _PARTS] = 0.0
    for length in np.unique(lengths):
        rows = np.flatnonzero(lengths == length)
        table[rows, :length] = flat[starts[rows, None] + np.arange(length)]
    return table
