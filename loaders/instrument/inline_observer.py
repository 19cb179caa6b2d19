"""Observe the batches of a pass in the main process, where the loader has no workers.

There is one observer for each kind of iterator. It sets instance attributes on the iterator that
hold no reference back to it. So the iterator is dropped, and its workers end, as without pipeprof.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from itertools import chain
from math import nan
from typing import Any, Protocol

import numpy as np

from pipeprof.loaders.instrument.batch_size import batch_nbytes, count_samples
from pipeprof.loaders.instrument.fetcher_hooks import FetcherHooks
from pipeprof.loaders.pipelines.observer import OpenPass
from pipeprof.log import suppress_and_log
from pipeprof.measure.clock import SYSTEM_CLOCK, Clock
from pipeprof.measure.loader_pass import FLUSH_EVERY
from pipeprof.measure.patches.all_reads import reads_recorded
from pipeprof.measure.request_counts import RequestCounts
from pipeprof.measure.requests import begin_noting, end_noting
from pipeprof.measure.resource_sampler import ResourceSampler
from pipeprof.measure.ring import REPORTED_FIELDS, STAGE_FIELDS, TIMING_FIELDS
from pipeprof.measure.rows import (
    SOURCE_FIELDS,
    Floats,
    Source,
    as_array,
    unknown_rows,
)

_log = logging.getLogger(__name__)

_WORKER, _PINNED, _SAMPLES = (
    SOURCE_FIELDS.index(name) for name in ("worker", "pinned_s", "samples")
)
_FIRST_FIELD = SOURCE_FIELDS.index(REPORTED_FIELDS[0])
_START, _END = REPORTED_FIELDS.index("fetch_start_s"), REPORTED_FIELDS.index("fetch_end_s")
_PARTS = slice(len(TIMING_FIELDS), len(TIMING_FIELDS) + len(STAGE_FIELDS))


class Observer(Protocol):
    """Observes the batches of a pass beyond the moments of their delivery."""

    @property
    def key(self) -> Callable[[Any], Any] | None:
        """A function that returns the key by which `source` finds the batch just delivered. Its
        argument is the iterator, or the batch where `key_takes_batch`. ``None`` means that the
        moments of delivery are enough."""
        ...

    key_takes_batch: bool

    batches: Iterator[Any] | None
    """The batches of a loader which may iterate a DataLoader; ``None`` for torch's loaders, and
    where a known library's stages are timed."""

    def source(self) -> Source:
        """Return what fills in the rows of the pass that begins now."""
        ...

    def close(self) -> None:
        """Stop observing, because the pass has ended or was left."""
        ...


class HostObserver:
    """Counts the samples of each batch, for iterables that cannot be hooked."""

    key_takes_batch = True
    batches: Iterator[Any] | None = None

    def __init__(self, batch_size: Any = None) -> None:
        self._batch_size = batch_size

    def key(self, batch: Any) -> Any:
        return count_samples(batch, self._batch_size)

    def source(self) -> Source:
        return self

    def columns(self, keys: list[Any], moments: Floats) -> tuple[Floats, int]:
        table = unknown_rows(len(keys))
        table[:, _SAMPLES] = [nan if key is None else key for key in keys]
        return table, 0

    def close(self) -> None:
        pass


_MOST_RECORDS = 2 * FLUSH_EVERY


class StagesObserver(HostObserver):
    """Also has the stages timed of what ``iterator`` holds. A generator may hold a pipeline only
    after its first batch."""

    def __init__(self, batch_size: Any, iterator: Any, opened: OpenPass) -> None:
        super().__init__(batch_size)
        self.batches = None if opened.is_attached else iterator
        self._iterator, self._opened = iterator, opened

    def key(self, batch: Any) -> Any:
        if self._iterator is not None:
            self._opened.look_at(self._iterator)
            self._iterator = None
        self._opened.delivered()
        return super().key(batch)

    def close(self) -> None:
        self._iterator = None
        self._opened.close()


class InlineObserver:
    """Observes a loader with ``num_workers=0``, whose fetcher runs in this process. A batch's
    record is found by its time: the fetch lies between request and delivery."""

    key, key_takes_batch = None, False
    batches: Iterator[Any] | None = None

    def __init__(self, whole: bool = False, clock: Clock = SYSTEM_CLOCK) -> None:
        """With ``whole`` the system's counters are sampled for every batch."""
        self._clock, self._meter = clock, ResourceSampler(batch_nbytes, whole, clock)
        self._records: deque[Sequence[float]] = deque(maxlen=_MOST_RECORDS)
        """Records of the last batches, in the order of their fetches."""
        self.requests = RequestCounts()
        """The storage requests of this pass."""
        self.window_end = 0
        """Batches of this pass from which on they are only timed."""
        self._pins = False
        self._hooks: FetcherHooks | None = None
        self._patches = ExitStack()

    def attach(self, iterator: Any) -> None:
        """Hook the fetcher of ``iterator`` and, until `close`, the reads of this process."""
        fetcher, add_record = iterator._dataset_fetcher, self._records.append
        self._hooks = FetcherHooks(add_record, self._meter, self.requests, clock=self._clock)
        self._hooks.attach(fetcher)
        self._hooks.set_active(True)
        self._pins = bool(getattr(iterator, "_pin_memory", False))
        self._patches.enter_context(reads_recorded())
        begin_noting()
        self._patches.callback(end_noting)

    def set_active(self, on: bool) -> None:
        """Put the hooks in place, or remove them."""
        if self._hooks is not None:
            self._hooks.set_active(on)

    def reports_stages(self) -> bool:
        """Return whether any recorded batch so far named a stage or made a storage request."""
        return self.requests.any()

    def source(self) -> Source:
        return self

    def columns(self, keys: list[Any], moments: Floats) -> tuple[Floats, int]:
        rows = self._rows(moments)
        return rows, int(np.isnan(rows[:, _FIRST_FIELD]).sum())

    def _rows(self, moments: Floats) -> Floats:
        """Return [moments, `SOURCE_FIELDS`], with the record of each batch where there is one."""
        table = unknown_rows(len(moments))
        table[:, _WORKER] = -1
        if self._pins:
            table[:, _PINNED] = moments[:, 1]
        records = _table(list(self._records))
        places = np.searchsorted(records[:, _START], moments[:, 0])
        found = places < len(records)
        found[found] = records[places[found], _END] <= moments[found, 1]
        rows = slice(None) if found.all() else found  # the former is faster
        table[rows, _FIRST_FIELD:] = records[places[rows]]
        for _ in range(places[found].max(initial=-1) + 1):
            self._records.popleft()
        return table

    def close(self) -> None:
        # a loader may keep its iterator for the next pass
        with suppress_and_log(_log, "a fetcher keeps its hooks"):
            self.set_active(False)
        self._patches.close()


class GeneratorObserver(InlineObserver):
    """Observes the batches of a generator, which the training loop's own thread makes."""

    def __init__(self, generator: Iterator[Any], whole: bool, clock: Clock) -> None:
        super().__init__(whole, clock)
        self.batches = _FetchedBatches(generator)  # by our hooks
        self.attach(self.batches)

    def _rows(self, moments: Floats) -> Floats:
        table = super()._rows(moments)
        known = np.isfinite(table[:, _FIRST_FIELD])
        table[known, _FIRST_FIELD] = moments[known, 0]  # no sampler picks what is fetched
        return table


class _FetchedBatches:
    """Takes batches from a generator by a fetcher, as torch's iterator without workers does."""

    collate_fn = None

    def __init__(self, generator: Iterator[Any]) -> None:
        self._generator = generator

    @property
    def _dataset_fetcher(self) -> _FetchedBatches:
        return self

    def fetch(self, index: None) -> Any:
        return next(self._generator)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return self.fetch(None)


def _table(records: list[Sequence[float]]) -> Floats:
    """Return [records, `REPORTED_FIELDS`]; stages that a record lacks are 0, other fields NaN."""
    count = len(records)
    lengths = np.fromiter(map(len, records), np.intp, count)
    flat = as_array(list(chain.from_iterable(records)))
    starts = np.cumsum(lengths) - lengths
    table = np.full((count, len(REPORTED_FIELDS)), nan)
    table[:, _PARTS] = 0.0
    for length in np.unique(lengths):
        rows = np.flatnonzero(lengths == length)
        table[rows, :length] = flat[starts[rows, None] + np.arange(length)]
    return table
