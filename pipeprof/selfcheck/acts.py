"""Define the work that a data set does for a sample: sleep, compute, read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from time import sleep, thread_time

from pipeprof.measure.stage_timer import stage
from pipeprof.model import Stage
from pipeprof.storage import Buffer, ObjectInfo, Store, open_store

_BLOCK = bytes(1 << 19)


@dataclass(frozen=True)
class Act:
    """One kind of work that a data set does for a sample."""

    do: Callable[[float], Sequence[Buffer]]
    """Performs the work, scaled in duration by the argument. Returns the data read, one part per
    request."""
    stage: Stage = Stage.FETCH
    """The stage of this work; *fetch* where the code does not report a stage."""
    sleeps_s: float = 0.0
    """Intended seconds of sleep."""


def sleeps(seconds: float, name: Stage = Stage.FETCH) -> Act:
    """Return an act that blocks, as on slow storage. It reports its stage unless that is
    *fetch*."""
    return Act(partial(_sleep, seconds, name), name, seconds)


def _sleep(seconds: float, name: Stage, stretch: float) -> Sequence[Buffer]:
    with nullcontext() if name is Stage.FETCH else stage(name):
        sleep(seconds * stretch)
    return ()


def computes(seconds: float, locked: bool = False) -> Act:
    """Return an act that uses CPU time as a decoder does, without the interpreter's lock.

    With ``locked`` it holds the lock as pure Python does: the thread that serialises a batch has to
    wait.
    """
    return Act(partial(_compute, seconds, locked))


def _compute(seconds: float, locked: bool, stretch: float) -> Sequence[Buffer]:
    end = thread_time() + seconds * stretch
    while thread_time() < end:
        sum(range(500)) if locked else sha256(_BLOCK)
    return ()


def reads(path: Path, size: int, times: int) -> Act:
    """Return an act that reads an object of ``size`` bytes, ``times`` over, through pipeprof's own
    storage, which reports the stage."""
    item = ObjectInfo(str(path), str(path), size)
    return Act(partial(_read, open_store(str(path)), item, times), Stage.READ)


def _read(store: Store, item: ObjectInfo, times: int, stretch: float) -> Sequence[Buffer]:
    return store.read(item, [(0, item.size)] * times)


def opens(path: Path, times: int) -> Act:
    """Return an act that reads a whole file, ``times`` over, with `open`, which reports no
    stage."""
    return Act(partial(_open, path, times), Stage.READ)


def _open(path: Path, times: int, stretch: float) -> Sequence[Buffer]:
    read = []
    for _ in range(times):
        with open(path, "rb") as file:
            read.append(file.read())
    return read
