"""Measure a loader whose ``__iter__`` is a generator, as other profilers put one in its place.

TraceML does so. A generator makes torch's iterator only when its first batch is asked for. Until
then our hooks wait, and are set where the loader makes it: in ``_get_iterator``.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from pipeprof.loaders.instrument.attributes import safe_getattr
from pipeprof.loaders.instrument.guarded_start import GuardedStart
from pipeprof.loaders.instrument.inline_observer import Observer
from pipeprof.loaders.instrument.inside import being_measured
from pipeprof.loaders.instrument.iterator import TimedPass
from pipeprof.loaders.instrument.torchs_iterator import torchs_within
from pipeprof.log import log_caught
from pipeprof.measure.loader_pass import Pass

_log = logging.getLogger(__name__)


def makes_it_later(iterator: Any) -> bool:
    """Return whether ``iterator`` is a generator that has not begun."""
    return (
        inspect.isgenerator(iterator) and inspect.getgeneratorstate(iterator) == inspect.GEN_CREATED
    )


class Starter(Protocol):
    """Starts the passes over a loader."""

    def start(
        self, loader: Any, start: Callable[[], Iterator[Any]]
    ) -> tuple[Iterator[Any], Observer | None]: ...

    @property
    def last_iterator(self) -> Any: ...

    def observe_again(self, loader: Any, iterator: Any) -> Observer | None: ...

    def unobserved(self, reason: str) -> Observer: ...


class LatePass:
    """A pass over ``loader`` whose `TimedPass` begins with its first batch."""

    def __init__(
        self,
        starter: Starter,
        timed_pass: Callable[[Any, Iterator[Any], Pass, Observer], TimedPass],
        loader: Any,
        generator: Iterator[Any],
        loader_pass: Pass,
    ) -> None:
        self.iterator = generator
        self._starter, self._timed_pass = starter, timed_pass
        self._loader, self._pass = loader, loader_pass
        self._timed: TimedPass | None = None

    def take(self) -> Any:
        """Return the next batch."""
        return self._take_first() if self._timed is None else self._timed.take()

    def leave(self) -> None:
        """End the pass, whether or not it was exhausted."""
        if self._timed is None:
            self._pass.leave()
        else:
            self._timed.leave()

    def _take_first(self) -> Any:
        loader, get_iterator = self._loader, self._loader._get_iterator
        asked_s = self._pass.now()
        made: tuple[Any, Observer | None] | None = None
        kept = _Kept(self._starter, loader)

        def hooked() -> Any:
            nonlocal made
            guarded = GuardedStart(get_iterator)
            try:
                made = self._starter.start(loader, guarded)
            except Exception as error:
                if guarded.failed:
                    raise  # an error of the loader's own
                log_caught(_log, error, "a loader that another profiler starts is not observed")
            return guarded.iterator if guarded.iterator is not None else get_iterator()

        own = vars(loader).get("_get_iterator")
        vars(loader)["_get_iterator"] = hooked
        try:
            with being_measured(loader):
                batch = next(self.iterator)
        except BaseException as error:
            kept.close()
            if made is not None and made[1] is not None:
                made[1].close()
            if isinstance(error, StopIteration):
                self._pass.leave(exhausted=True)
            raise
        finally:
            del vars(loader)["_get_iterator"]
            if own is not None:
                vars(loader)["_get_iterator"] = own
        if made is None and kept.continues:
            made = kept.iterator, kept.observer
        else:
            kept.close()
        torchs, observer = made or (None, None)
        if observer is None:
            observer = self._starter.unobserved(f"{type(loader).__name__} makes no iterator")
        begun = BegunIterator(self.iterator, batch, torchs_within(torchs))
        self._timed = self._timed_pass(loader, begun, self._pass, observer)
        batch = self._timed.take()
        self._pass.asked_earlier(asked_s)
        return batch


class _Kept:
    """Torch's iterator of the last pass, if it still exists. Then the loader may continue with it:
    one that has persistent workers, or that keeps the iterator itself as YOLO's does."""

    def __init__(self, starter: Starter, loader: Any) -> None:
        self._loader = loader
        self.iterator = starter.last_iterator
        exists = self.iterator is not None
        self.observer = starter.observe_again(loader, self.iterator) if exists else None
        self._yielded = safe_getattr(self.iterator, "_num_yielded")

    @property
    def continues(self) -> bool:
        """Whether the batch that was taken last came from it."""
        if self.iterator is None:
            return False
        persistent = torchs_within(safe_getattr(self._loader, "_iterator")) is self.iterator
        return persistent or safe_getattr(self.iterator, "_num_yielded") != self._yielded

    def close(self) -> None:
        if self.observer is not None:
            self.observer.close()


class BegunIterator:
    """An iterator of which the first batch was taken, and torch's iterator that it takes from."""

    def __init__(self, iterator: Iterator[Any], first: Any, torchs: Any = None) -> None:
        self._iterator, self._first, self._torchs = iterator, [first], torchs

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return self._first.pop() if self._first else next(self._iterator)
