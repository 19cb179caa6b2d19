"""Measure a loader that is none of torch's: the DataLoader that it iterates, or else itself.

Which of the two it is becomes known when the iterator is made, or when its first batch is asked
for. A DataLoader that is begun to be iterated then, in the same thread, is measured from inside,
with all stages of its workers. Generators do so, and classes that have a DataLoader.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Protocol

from pipeprof.loaders.instrument.inline_observer import Observer
from pipeprof.loaders.instrument.inside import iterating_outer, watch_loaders
from pipeprof.loaders.instrument.iterator import TimedPass
from pipeprof.loaders.instrument.late_start import BegunIterator
from pipeprof.measure.loader_pass import Pass


class OuterProfiler(Protocol):
    """The profiler to which the pass belongs."""

    @property
    def batches(self) -> int:
        """Number of batches delivered so far."""
        ...


class OuterPass:
    """A pass over a loader that may iterate a DataLoader."""

    iterator: Iterator[Any]

    def __init__(
        self,
        profiler: OuterProfiler,
        timed_pass: Callable[[Any, Iterator[Any], Pass, Observer], TimedPass],
        loader: Any,
        loader_pass: Pass,
        on_step_aside: Callable[[], None],
    ) -> None:
        """Prepare to measure ``loader`` by ``profiler``, or a DataLoader in its place. Then
        ``on_step_aside`` is called."""
        self._profiler, self._timed_pass, self._loader = profiler, timed_pass, loader
        self._pass, self._on_step_aside = loader_pass, on_step_aside
        self._observer: Observer | None = None
        self._timed: TimedPass | None = None
        watch_loaders()

    def start(self, make: Callable[[OuterPass], tuple[Iterator[Any], Observer | None]]) -> None:
        """Begin the pass on the iterator that ``make`` returns with its observer."""
        self.iterator, observer = make(self)
        self._observer = observer
        self._pass.started()
        if observer is not None and observer.batches is None:
            self._timed = self._timed_pass(self._loader, self.iterator, self._pass, observer)

    def watched(self, make: Callable[[], Any]) -> Any:
        """Return ``make()``. A DataLoader that is begun to be iterated in it is measured in the
        place of the loader."""
        with iterating_outer(self._profiler, self._step_aside):
            return make()

    @property
    def has_stepped_aside(self) -> bool:
        """Whether a DataLoader is measured in the place of the loader."""
        return self._pass.was_dropped

    def take(self) -> Any:
        """Return the next batch."""
        if self._timed is not None:
            return self._timed.take()
        return next(self.iterator) if self.has_stepped_aside else self._take_first()

    def leave(self) -> None:
        """End the pass, whether or not it was exhausted."""
        if self._timed is not None:
            self._timed.leave()
        else:
            self._close_observer()
            self._pass.leave()

    def _take_first(self) -> Any:
        assert self._observer is not None
        batches = self._observer.batches
        assert batches is not None
        asked_s, count = self._pass.now(), self._profiler.batches
        try:
            batch = self.watched(partial(next, batches))
        except BaseException as error:
            self._close_observer()
            self._pass.leave(exhausted=isinstance(error, StopIteration))
            raise
        if self._profiler.batches > count:  # of a pass over a DataLoader that began earlier
            self._step_aside()
        if self.has_stepped_aside:
            return batch
        begun = BegunIterator(batches, batch)
        self._timed = self._timed_pass(self._loader, begun, self._pass, self._observer)
        batch = self._timed.take()
        self._pass.asked_earlier(asked_s)
        return batch

    def _step_aside(self) -> None:
        """Leave the measurement to the DataLoader that is iterated."""
        if self.has_stepped_aside:
            return
        self._close_observer()
        self._pass.drop()
        self._on_step_aside()

    def _close_observer(self) -> None:
        if self._observer is not None:
            self._observer.close()
