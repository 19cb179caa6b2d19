"""One pass over a loader, clocked."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any, Protocol

from pipeprof.loaders.instrument.device_monitor import DeviceMonitor
from pipeprof.loaders.instrument.inline_observer import Observer
from pipeprof.loaders.instrument.sampling import PAGE, SamplingSchedule
from pipeprof.loaders.instrument.worker_observer import clocked
from pipeprof.log import log_caught, suppress_and_log
from pipeprof.measure.finalizer import finalizer
from pipeprof.measure.loader_pass import Pass

_log = logging.getLogger(__name__)


class Finder(Protocol):
    schedule: SamplingSchedule

    def find_device(self) -> DeviceMonitor | None: ...


class TimedPass:
    """What ``iterator`` hands out, noted. Written for few steps: each costs a microsecond's tenth,
    since the training loop has driven our code out of the caches."""

    __slots__ = ("_device", "_finder", "_key", "_look_in", "_now", "_observer", "_of_batch",
                 "_pass", "iterator")  # fmt: skip

    def __init__(
        self, iterator: Iterator[Any], finder: Finder, turn: Pass, observer: Observer
    ) -> None:
        self.iterator = iterator
        self._finder = finder
        self._pass, self._now = turn, turn.now
        self._observer, self._of_batch = observer, observer.of_batch
        self._device: DeviceMonitor | None = None
        self._look_in = 1
        """Batches, after which to look for an accelerator, and which batches to watch."""
        turn.source, self._key = observer.source(), observer.key
        # of a torch that we do not know
        with suppress_and_log(_log, "the first batches of a pass are not watched"):
            self._watch(finder.schedule.start(observer))
        self._find_device()

    @property
    def delivered(self) -> int:
        """Batches of this pass so far."""
        return self._pass.nth

    @property
    def in_stretches(self) -> bool:
        """Batches are only clocked now."""
        return self._key is clocked

    def take(self) -> Any:
        """The next batch."""
        turn = self._pass
        turn.asked_s = self._now()
        if not self._look_in:
            self._look()
        device = self._device
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
            except Exception as error:
                log_caught(_log, error, "a batch's stages are not known")
                told = None
        turn.deliver(told)
        if device is not None:
            device.deliver(number)
        self._look_in -= 1
        return batch

    def leave(self) -> None:
        self._pass.leave()
        self._leave()

    def _look(self) -> None:
        """After the first batch, then every page at least. What that takes is no stall."""
        self._look_in = PAGE
        if self._device is None:
            self._find_device()
        with suppress_and_log(_log, "which batches to watch next was not settled"):
            watched, left = self._finder.schedule.look(
                self._observer, self.iterator, not self.in_stretches
            )
            self._watch(watched)
            self._look_in = min(PAGE, left)
        self._pass.ask()

    def _find_device(self) -> None:
        self._device = self._finder.find_device()
        if self._device is not None:
            self._finder.schedule.watch_all()

    def _watch(self, watched: bool) -> None:
        self._key = self._observer.key if watched else clocked

    def _leave(self) -> None:
        self._observer.leave()
        if self._device is not None:
            self._device.leave()


class StandIn:
    """What it has not itself, and is not of its ``_own``, it takes from the object for which it
    stands; ``isinstance`` answers as for that, too."""

    _own: tuple[str, ...]
    """Names of the attributes that are not of that object."""

    def _stands_for(self) -> Any:
        raise NotImplementedError

    def __len__(self) -> int:
        return len(self._stands_for())

    def __bool__(self) -> bool:
        return bool(self._stands_for())  # which may have no length

    def __getattr__(self, name: str) -> Any:
        if name in self._own:  # not made yet, as when it is copied
            raise AttributeError(name)
        return getattr(self._stands_for(), name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._stands_for(), name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._stands_for(), name)

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return type(self._stands_for())


class ProfiledIterator(StandIn):
    """Hands out what the iterator of ``turn`` does; all else about that stays as it is."""

    _own = ("_turn",)
    _turn: TimedPass

    def __init__(self, turn: TimedPass) -> None:
        object.__setattr__(self, "_turn", turn)

    def _stands_for(self) -> Any:
        return self._turn.iterator

    def __iter__(self) -> ProfiledIterator:
        return self

    def __next__(self) -> Any:
        return self._turn.take()

    @finalizer
    def __del__(self) -> None:
        if "_turn" in self.__dict__:
            with suppress_and_log(_log, "the end of a pass is not recorded"):
                self._turn.leave()
