"""One pass over a loader, clocked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Protocol

from pipeprof.loaders.device_side import DeviceSide
from pipeprof.loaders.observe import Observer
from pipeprof.measure.recorder import Pass

_LOOK_EVERY = 64
"""Batches between two looks for an accelerator, while none was seen."""


class Finder(Protocol):
    def find_device(self) -> DeviceSide | None: ...


class ProfiledIterator:
    """Hands out what ``iterator`` does; everything else about that stays as it is."""

    _own = ("_iterator", "_finder", "_pass", "_observer", "_device")

    _iterator: Iterator[Any]
    _finder: Finder
    _pass: Pass
    _observer: Observer
    _device: DeviceSide | None

    def __init__(
        self,
        iterator: Iterator[Any],
        finder: Finder,
        turn: Pass,
        observer: Observer,
    ) -> None:
        turn.source = observer
        own = object.__setattr__
        own(self, "_iterator", iterator)
        own(self, "_finder", finder)
        own(self, "_pass", turn)
        own(self, "_observer", observer)
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
            self._leave()
            raise
        # A batch is any object at all, and torch may change: what cannot be told stays unknown, and
        # is no reason to disturb the training.
        try:
            key = self._observer.key(self._iterator, batch)
        except Exception:
            key = None
        turn.deliver(key)
        if device is not None:
            device.deliver(turn.index)
        elif not (nth := turn.nth) % _LOOK_EVERY or nth < 3:
            object.__setattr__(self, "_device", self._finder.find_device())
        return batch

    def _leave(self) -> None:
        self._observer.leave()
        if self._device is not None:
            self._device.leave()

    def __len__(self) -> int:
        return len(self._iterator)  # type: ignore[arg-type]

    def __bool__(self) -> bool:
        return bool(self._iterator)  # which may have no length

    def __getattr__(self, name: str) -> Any:
        if name in self._own:  # not made yet, as when it is copied
            raise AttributeError(name)
        return getattr(self._iterator, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._iterator, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._iterator, name)

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """As for the loader: ``isinstance`` answers as for the iterator itself."""
        return type(self._iterator)

    def __del__(self) -> None:
        if "_device" in self.__dict__:
            with suppress(Exception):  # Python may be shutting down
                self._pass.leave()
                self._leave()
