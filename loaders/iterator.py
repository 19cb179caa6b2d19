"""One pass over a loader, clocked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

from pipeprof.loaders.batches import count_samples
from pipeprof.loaders.device_side import DeviceSide
from pipeprof.loaders.observe import Observer
from pipeprof.measure.recorder import Origin, Pass

_LOOK_EVERY = 64
"""Batches between two looks for an accelerator, while none was seen."""


class Finder(Protocol):
    def find_device(self) -> DeviceSide | None: ...


class ProfiledIterator:
    """Hands out what ``iterator`` does; everything else about that stays as it is."""

    _own = ("_iterator", "_finder", "_pass", "_observer", "_batch_size", "_device")

    _iterator: Iterator[Any]
    _finder: Finder
    _pass: Pass
    _observer: Observer
    _batch_size: int | None
    _device: DeviceSide | None

    def __init__(
        self,
        iterator: Iterator[Any],
        finder: Finder,
        turn: Pass,
        observer: Observer,
        batch_size: int | None,
    ) -> None:
        own = object.__setattr__
        own(self, "_iterator", iterator)
        own(self, "_finder", finder)
        own(self, "_pass", turn)
        own(self, "_observer", observer)
        own(self, "_batch_size", batch_size)
        own(self, "_device", finder.find_device())

    def __iter__(self) -> ProfiledIterator:
        return self

    def __next__(self) -> Any:
        turn, device = self._pass, self._device
        turn.ask()
        if device is not None:
            device.ask()
        try:
            batch = next(self._iterator)
        except StopIteration:
            turn.leave(exhausted=True)
            self._leave_device()
            raise
        # A batch is any object at all, and torch may change: what cannot be told counts as one
        # sample of unknown origin, and is no reason to disturb the training.
        try:
            samples = count_samples(batch, self._batch_size)
        except Exception:
            samples = 1
        observer = self._observer
        try:
            origin = observer.origin(self._iterator)
        except Exception:
            origin = Origin()
        turn.deliver(samples, origin, observer.expects_record)
        if device is not None:
            device.deliver(turn.index)
        elif not turn.nth % _LOOK_EVERY or turn.nth < 3:
            object.__setattr__(self, "_device", self._finder.find_device())
        return batch

    def _leave_device(self) -> None:
        if self._device is not None:
            self._device.leave()

    def __len__(self) -> int:
        return len(self._iterator)  # type: ignore[arg-type]

    def __getattr__(self, name: str) -> Any:
        if name in self._own:  # not made yet, as when it is copied
            raise AttributeError(name)
        return getattr(self._iterator, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._iterator, name, value)

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """As for the loader: ``isinstance`` answers as for the iterator itself."""
        return type(self._iterator)

    def __del__(self) -> None:
        if "_device" in self.__dict__:
            self._pass.leave()
            self._leave_device()
