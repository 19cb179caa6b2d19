"""Measure a generator: the DataLoader that it iterates, or else what it does itself.

Which of the two it is becomes known when the first batch is asked for. A DataLoader that the
generator begins to iterate then is measured from inside, with all stages of its workers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol

from pipeprof.loaders.instrument.inline_observer import Observer
from pipeprof.loaders.instrument.inside import first_batch_of_generator, watch_loaders
from pipeprof.loaders.instrument.iterator import TimedPass
from pipeprof.loaders.instrument.late_start import BegunIterator
from pipeprof.measure.loader_pass import Pass


class GeneratorProfiler(Protocol):
    """The profiler to which the pass belongs."""

    is_within_generator: bool
    """Whether it measures a DataLoader that the generator iterates."""


class GeneratorPass:
    """A pass over a generator, in which it is decided what to measure."""

    def __init__(
        self,
        profiler: GeneratorProfiler,
        timed_pass: Callable[[Any, Iterator[Any], Pass, Observer], TimedPass],
        loader: Any,
        loader_pass: Pass,
        generator: Iterator[Any],
        observer: Observer,
    ) -> None:
        """Prepare to measure ``generator``, which ``loader`` returned, by ``observer``, or else
        what it iterates by ``profiler``."""
        self.iterator = generator
        self._profiler, self._timed_pass, self._loader = profiler, timed_pass, loader
        self._pass, self._observer = loader_pass, observer
        self._batches = observer.batches or generator
        self._timed: TimedPass | None = None
        self._take = self._take_first
        watch_loaders()

    def take(self) -> Any:
        """Return the next batch."""
        return self._take()

    def leave(self) -> None:
        """End the pass, whether or not it was exhausted."""
        self._observer.close()
        if self._timed is not None:
            self._timed.leave()
        else:
            self._pass.leave()

    def _take_first(self) -> Any:
        asked_s = self._pass.now()
        try:
            with first_batch_of_generator(self._profiler, self._step_aside):
                batch = next(self._batches)
        except BaseException as error:
            self._observer.close()
            self._pass.leave(exhausted=isinstance(error, StopIteration))
            raise
        if self._pass.was_dropped:
            return batch
        begun = BegunIterator(self._batches, batch)
        self._timed = self._timed_pass(self._loader, begun, self._pass, self._observer)
        self._take = self._timed.take
        batch = self._timed.take()
        self._pass.asked_earlier(asked_s)
        return batch

    def _step_aside(self) -> None:
        """Leave the measurement to the DataLoader that the generator is about to iterate."""
        self._observer.close()
        self._pass.drop()
        self._profiler.is_within_generator = True
        self._take = self.iterator.__next__
