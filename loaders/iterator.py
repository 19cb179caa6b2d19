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


class Turn:
    """What ``iterator`` hands out, noted. Written for few steps: each costs a microsecond's tenth,
    since the training loop has driven our code out of the caches."""

    __slots__ = ("_device", "_finder", "_key", "_observer", "_pass", "iterator")

    def __init__(
        self, iterator: Iterator[Any], finder: Finder, turn: Pass, observer: Observer
    ) -> None:
        turn.source = observer
        self.iterator = iterator
        self._finder = finder
        self._pass = turn
        self._observer = observer
        self._key = observer.key
        self._device = finder.find_device()

    def take(self) -> Any:
        """The next batch."""
        turn, device = self._pass, self._device
        turn.ask()
        if device is not None:
            device.ask(turn.number)
        try:
            batch = next(self.iterator)
        except StopIteration:
            turn.leave(exhausted=True)
            self._leave()
            raise
        number = turn.number if device is not None else 0
        key, told = self._key, None
        if key is not None:
            # A batch is any object at all, and torch may change: what cannot be told stays unknown,
            # and is no reason to disturb the training.
            try:
                told = key(self.iterator, batch)
            except Exception:
                told = None
        turn.deliver(told)
        if device is not None:
            device.deliver(number)
        elif not (nth := turn.nth) % _LOOK_EVERY or nth < 3:
            self._device = self._finder.find_device()
        return batch

    def leave(self) -> None:
        self._pass.leave()
        self._leave()

    def _leave(self) -> None:
        self._observer.leave()
        if self._device is not None:
            self._device.leave()


class ProfiledIterator:
    """Hands out what ``iterator`` does; everything else about that stays as it is."""

    _turn: Turn

    def __init__(
        self, iterator: Iterator[Any], finder: Finder, turn: Pass, observer: Observer
    ) -> None:
        object.__setattr__(self, "_turn", Turn(iterator, finder, turn, observer))

    def __iter__(self) -> ProfiledIterator:
        return self

    def __next__(self) -> Any:
        return self._turn.take()

    def __len__(self) -> int:
        return len(self._turn.iterator)  # type: ignore[arg-type]

    def __bool__(self) -> bool:
        return bool(self._turn.iterator)  # which may have no length

    def __getattr__(self, name: str) -> Any:
        if name == "_turn":  # not made yet, as when it is copied
            raise AttributeError(name)
        return getattr(self._turn.iterator, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._turn.iterator, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._turn.iterator, name)

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """As for the loader: ``isinstance`` answers as for the iterator itself."""
        return type(self._turn.iterator)

    def __del__(self) -> None:
        if "_turn" in self.__dict__:
            with suppress(Exception):  # Python may be shutting down
                self._turn.leave()
