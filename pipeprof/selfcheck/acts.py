"""What a data set does for a sample: sleep, compute, read."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from time import sleep, thread_time
from typing import Protocol

from pipeprof.measure.stage_timer import stage
from pipeprof.model import Stage
from pipeprof.storage import Buffer, ObjectInfo, Store

_BLOCK = bytes(1 << 19)


class Act(Protocol):
    @property
    def stage(self) -> Stage:
        """What it is; *fetch* when its code does not say."""
        ...

    @property
    def sleeps_s(self) -> float:
        """Of it asleep, by intent."""
        ...

    def do(self, stretch: float) -> Sequence[Buffer]:
        """Do it, ``stretch`` times as long as usual; what was read, a part per request."""
        ...


@dataclass(frozen=True)
class Sleep:
    """Blocks, as on a slow storage."""

    seconds: float
    stage: Stage = Stage.FETCH

    @property
    def sleeps_s(self) -> float:
        return self.seconds

    def do(self, stretch: float) -> Sequence[Buffer]:
        with _named(self.stage):
            sleep(self.seconds * stretch)
        return ()


@dataclass(frozen=True)
class Burn:
    """Computes for so many seconds of CPU time, as a decoder does: without the interpreter's lock.

    With ``locked``, as pure Python does: the thread that serialises what is made then waits.
    """

    seconds: float
    stage: Stage = Stage.FETCH
    locked: bool = False
    sleeps_s: float = 0.0

    def do(self, stretch: float) -> Sequence[Buffer]:
        with _named(self.stage):
            end = thread_time() + self.seconds * stretch
            while thread_time() < end:
                sum(range(500)) if self.locked else sha256(_BLOCK)
        return ()


@dataclass(frozen=True)
class Read:
    """Reads the whole of an object, ``times`` over, through pipeprof's own store, which names the
    stage itself."""

    item: ObjectInfo
    store: Store
    times: int
    stage: Stage = Stage.READ
    sleeps_s: float = 0.0

    def do(self, stretch: float) -> Sequence[Buffer]:
        return self.store.read(self.item, [(0, self.item.size)] * self.times)


@dataclass(frozen=True)
class Open:
    """Reads a whole file, ``times`` over, as any code may, and says nothing of it."""

    path: Path
    times: int
    stage: Stage = Stage.READ
    sleeps_s: float = 0.0

    def do(self, stretch: float) -> Sequence[Buffer]:
        return [self._read() for _ in range(self.times)]

    def _read(self) -> bytes:
        with open(self.path, "rb") as file:
            return file.read()


def _named(name: Stage) -> AbstractContextManager[None]:
    """As a user's code names what it does."""
    return nullcontext() if name is Stage.FETCH else stage(name)
