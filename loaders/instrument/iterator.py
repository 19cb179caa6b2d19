"""Time one pass over a loader, batch by batch."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from typing import Any, Protocol

from pipeprof.loaders.instrument.device_monitor import DeviceMonitor
from pipeprof.loaders.instrument.inline_observer import Observer
from pipeprof.loaders.instrument.sampling import CHECK_EVERY, LONGEST, SamplingSchedule
from pipeprof.loaders.instrument.taking_thread import takes_ahead
from pipeprof.loaders.instrument.torchs_iterator import torchs_within
from pipeprof.log import log_caught, suppress_and_log
from pipeprof.measure.finalizer import finalizer
from pipeprof.measure.loader_pass import FLUSH_EVERY, FLUSH_RECORDED_EVERY, Pass
from pipeprof.measure.rows import ONLY_TIMED

_log = logging.getLogger(__name__)


class PassOwner(Protocol):
    """The profiler to which a pass belongs."""

    @property
    def schedule(self) -> SamplingSchedule: ...

    live_s: float
    """Seconds spent on showing and exporting its figures."""
    taken_ahead: bool
    """Whether a thread takes batches ahead of the training loop."""

    def find_device(self) -> DeviceMonitor | None: ...


class TimedPass:
    """Times each batch that ``iterator`` yields. The code takes few steps on purpose. A training
    loop evicts it from the caches, so that each step costs about 0.1 µs."""

    __slots__ = ("_default_key", "_device", "_key", "_key_takes_batch", "_monitor",
                 "_now", "_observer", "_owner", "_pass", "_torchs", "_until_check",
                 "iterator")  # fmt: skip

    _key: Callable[[Any], Any] | None
    _default_key: int | None
    """The key of a batch for which `_key` is not called."""

    def __init__(
        self, iterator: Iterator[Any], owner: PassOwner, loader_pass: Pass, observer: Observer
    ) -> None:
        self.iterator, self._torchs = iterator, torchs_within(iterator)
        self._owner = owner
        self._pass, self._now = loader_pass, loader_pass.now
        self._observer, self._key_takes_batch = observer, observer.key_takes_batch
        self._monitor: DeviceMonitor | None = None
        """Of the accelerator in use, if any."""
        self._device: DeviceMonitor | None = None
        """The same while batches are recorded."""
        self._until_check = 1
        """Number of batches until `_check` runs."""
        loader_pass.source = observer.source()
        self._set_recording(True)
        # an unknown version of torch may raise anything
        with suppress_and_log(_log, "the first batches of a pass are not recorded"):
            self._set_recording(owner.schedule.start(observer, self._torchs))
        self._find_device()

    @property
    def delivered(self) -> int:
        """Number of batches delivered in this pass."""
        return self._pass.nth

    @property
    def only_timed(self) -> bool:
        """Whether batches are only timed now, and not recorded in full."""
        return self._default_key == ONLY_TIMED

    def take(self) -> Any:
        """Return the next batch."""
        current = self._pass
        current.asked_s = self._now()
        if self._until_check <= 0:
            self._check()
        self._until_check -= 1
        device = self._device
        if device is not None:
            device.ask(current.number)
        try:
            batch = next(self.iterator)
        except StopIteration:
            current.leave(exhausted=True)
            self._leave()
            raise
        number = current.number if device is not None else 0
        key, batch_key = self._key, self._default_key
        if key is not None:
            # a batch is any object, and torch may change: an error must not reach the training
            try:
                batch_key = key(batch if self._key_takes_batch else self._torchs)
            except Exception as error:
                log_caught(_log, error, "a batch's stages are not known")
        delivered_s = self._now()
        current.notes.append((current.asked_s, delivered_s, batch_key))
        if device is not None:
            device.deliver(number, current.asked_s, delivered_s)
        return batch

    def leave(self) -> None:
        """End the pass, whether or not it was exhausted."""
        self._pass.leave()
        self._leave()

    def _check(self) -> None:
        """Look for an accelerator, and decide whether the next batches are recorded. It runs after
        the first batch, and then at least every `LONGEST` batches. Its own time does not count as
        a stall."""
        self._until_check = CHECK_EVERY
        if self.delivered == 1 and takes_ahead(sys._getframe()):
            self._owner.taken_ahead = True
        with suppress_and_log(_log, "the figures of the last batches are not complete"):
            most = FLUSH_EVERY if self.only_timed else FLUSH_RECORDED_EVERY
            self._pass.flush_if_full(LONGEST, most)
        if self._monitor is None:
            self._find_device()
        with suppress_and_log(_log, "which batches to record next was not decided"):
            recorded, count = self._owner.schedule.check(
                self._observer, self._torchs, not self.only_timed, self.delivered
            )
            self._set_recording(recorded)
            self._until_check = min(LONGEST, count)
        self._pass.ask()

    def _find_device(self) -> None:
        self._monitor = self._owner.find_device()
        if self._monitor is not None:
            self._owner.schedule.add_device()
            self._device = None if self.only_timed else self._monitor

    def _set_recording(self, on: bool) -> None:
        self._key, self._default_key = (self._observer.key, None) if on else (None, ONLY_TIMED)
        if self._monitor is not None and on is (self._device is None):
            self._monitor.switch(on, self._pass.number)
            self._device = self._monitor if on else None

    def _leave(self) -> None:
        self._observer.close()
        if self._monitor is not None:
            self._monitor.leave()


class Proxy:
    """Stands in for another object: attributes, length, truth and ``isinstance`` are that object's.
    Only attributes of the class, and those in ``_own_attributes``, are the proxy's own."""

    __slots__ = ("__weakref__",)
    _own_attributes: tuple[str, ...]

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]
        attributes: dict[str, Any] = self._wrapped_object().__dict__
        return attributes

    def _wrapped_object(self) -> Any:
        raise NotImplementedError

    def __len__(self) -> int:
        return len(self._wrapped_object())

    def __bool__(self) -> bool:
        return bool(self._wrapped_object())  # which may have no length

    def __getattr__(self, name: str) -> Any:
        if name in self._own_attributes:  # not set yet, as while it is copied
            raise AttributeError(name)
        return getattr(self._wrapped_object(), name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._wrapped_object(), name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._wrapped_object(), name)

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        wrapped = self._wrapped_object()
        kind: type = type(wrapped)
        return _class_of(kind, wrapped.__class__)


@cache
def _class_of(kind: type, claimed: type) -> type:
    """Return a class for ``isinstance`` of an object that is a ``kind``. Accelerate's loaders claim
    to be a DataLoader, too, which they are not."""
    if issubclass(kind, claimed):
        return kind
    with suppress(TypeError):  # the two have no common order
        return type(kind.__name__, (kind, claimed), {})
    return kind


class BatchTimer(Protocol):
    """A pass that times its batches, as `TimedPass` does."""

    iterator: Iterator[Any]

    def take(self) -> Any: ...

    def leave(self) -> None: ...


class ProfiledIterator(Proxy):
    """Yields the batches of a `TimedPass`, and otherwise behaves as the iterator of that pass.
    ``__next__`` is a slot that holds a method of the pass, so that Python calls that at once."""

    __slots__ = ("__next__", "_timed_pass")
    _own_attributes = ("_timed_pass",)
    __next__: Callable[[], Any]
    _timed_pass: BatchTimer

    def __init__(self, timed_pass: BatchTimer) -> None:
        object.__setattr__(self, "_timed_pass", timed_pass)
        object.__setattr__(self, "__next__", timed_pass.take)

    def _wrapped_object(self) -> Any:
        return self._timed_pass.iterator

    def __iter__(self) -> ProfiledIterator:
        return self

    @finalizer
    def __del__(self) -> None:
        with suppress_and_log(_log, "the end of a pass is not recorded"):
            self._timed_pass.leave()
