"""One pass over a loader, clocked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Protocol

from pipeprof.loaders.device_side import DeviceSide
from pipeprof.loaders.observe import Observer
from pipeprof.loaders.pace import Pace, PassingBy
from pipeprof.loaders.stretches import PAGE
from pipeprof.measure.finalizer import finalizer
from pipeprof.measure.recorder import Pass


class Finder(Protocol):
    pace: Pace

    def find_device(self) -> DeviceSide | None: ...


class Turn:
    """What ``iterator`` hands out, noted. Written for few steps: each costs a microsecond's tenth,
    since the training loop has driven our code out of the caches."""

    __slots__ = ("_device", "_finder", "_key", "_look_in", "_looks", "_now", "_observer",
                 "_of_batch", "_pass", "_passing", "iterator")  # fmt: skip

    def __init__(
        self, iterator: Iterator[Any], finder: Finder, turn: Pass, observer: Observer
    ) -> None:
        turn.source = observer.source()
        self.iterator = iterator
        self._finder = finder
        self._pass, self._now = turn, turn.now
        self._observer = observer
        self._key, self._of_batch = observer.key, observer.of_batch
        self._device = finder.find_device()
        self._passing: PassingBy | None = None
        self._looks, self._look_in = 0, 1
        with suppress(Exception):
            if self._device is not None:
                finder.pace.watch_all(observer)
            else:
                self._passing = finder.pace.from_start(turn, observer, iterator)

    @property
    def delivered(self) -> int:
        """Batches of this pass so far."""
        unseen = self._passing.count() if self._passing is not None else 0
        return self._pass.nth + unseen

    def take(self) -> Any:
        """The next batch."""
        passing = self._passing
        if passing is not None and (
            self.iterator._rcvd_idx < passing.until  # type: ignore[attr-defined]
            or not self._over(passing)
        ):
            try:
                return next(self.iterator)
            except StopIteration:
                self.leave()
                raise
        turn, device = self._pass, self._device
        turn.asked_s = self._now()
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
                told = key(batch if self._of_batch else self.iterator)
            except Exception:
                told = None
        turn.deliver(told)
        if device is not None:
            device.deliver(number)
        else:
            self._look_in -= 1
            if not self._look_in:
                self._look()
        return batch

    def pass_by(self, passing: PassingBy) -> None:
        """Note nothing of the batches that come, until that is over."""
        self._passing = passing

    def leave(self) -> None:
        if self._passing is not None:
            self._pass.pass_by(self._passing.count())
            self._passing = None
        self._pass.leave()
        self._leave()

    def _look(self) -> None:
        """For an accelerator, and whether to watch: after two batches, then every page at least."""
        self._looks += 1
        self._look_in = PAGE
        self._device, pace = self._finder.find_device(), self._finder.pace
        with suppress(Exception):  # of a torch that we do not know
            if self._device is not None:
                pace.watch_all(self._observer)
                return
            told = pace.look(self._pass, self._observer, self.iterator)
            if isinstance(told, PassingBy):
                self._passing = told
            else:
                self._look_in = 1 if self._looks == 1 else min(told, PAGE)

    def _over(self, passing: PassingBy) -> bool:
        """Whether batches are noted again, from the one on that is asked for now."""
        with suppress(Exception):  # what we cannot do must not disturb the training
            if not passing.over():
                return False
        self._passing = None
        self._pass.pass_by(passing.count())
        self._look_in = 1
        return True

    def _leave(self) -> None:
        self._observer.leave()
        if self._device is not None:
            self._device.leave()


class ProfiledIterator:
    """Hands out what the iterator of ``turn`` does; all else about that stays as it is."""

    _turn: Turn

    def __init__(self, turn: Turn) -> None:
        object.__setattr__(self, "_turn", turn)

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

    @finalizer
    def __del__(self) -> None:
        if "_turn" in self.__dict__:
            with suppress(Exception):  # it must not disturb the training
                self._turn.leave()
