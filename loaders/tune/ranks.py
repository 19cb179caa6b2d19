"""How the ranks of a job take the same settings: they agree through the job's store.

Each rank runs the same search. What it measured and what it proposes are exchanged, and the slowest
rank's are used by all. A rank never waits: it looks for the others' answers while training runs.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Generator, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

from torch import distributed

from pipeprof.measure.clock import SYSTEM_CLOCK, Clock

if TYPE_CHECKING:  # some builds of torch have none
    from torch.distributed.distributed_c10d import Store

T = TypeVar("T")
Combine = Callable[[Sequence[T]], Any]
"""What follows from the values of all ranks, in their order."""

_POLL_S = 0.05
_TIMEOUT_S = 120.0
"""A rank that does not answer for so long ends the search in all ranks."""


class RanksDisagree(Exception):
    """Why the ranks cannot be tuned together."""


class Ranks(Protocol):
    """All processes that must take the same setting."""

    rank: int

    def agree(self, value: T, combine: Combine[T]) -> Generator[None, Any, Any]:
        """Return what ``combine`` makes of the values of all ranks; yield until all are known.

        Raises:
            RanksDisagree: A rank does not answer, or has left.
        """

    def others_wait(self) -> bool:
        """Return whether another rank has called `agree` already."""

    def call(self) -> None:
        """Let `called` be true in all ranks."""

    def called(self) -> bool:
        """Return whether a rank has called since this last was true."""

    def leave(self, reason: str) -> None:
        """Let no rank wait for this one."""


class OneRank:
    """A job of one process."""

    rank = 0

    def __init__(self) -> None:
        self._called = False

    def agree(self, value: T, combine: Combine[T]) -> Generator[None, Any, Any]:
        yield from ()
        return combine([value])

    def others_wait(self) -> bool:
        return False

    def call(self) -> None:
        self._called = True

    def called(self) -> bool:
        called, self._called = self._called, False
        return called

    def leave(self, reason: str) -> None:
        pass


class JobRanks:
    """The ranks of a distributed job, by keys in its store. Rank 0 combines the values."""

    def __init__(self, store: Store, rank: int, world: int, clock: Clock = SYSTEM_CLOCK) -> None:
        self.rank = rank
        self._store, self._world, self._now = store, world, clock.now
        self._round = self._calls = 0
        self._polled_s = clock.now()

    def agree(self, value: T, combine: Combine[T]) -> Generator[None, Any, Any]:
        store, key = self._store, f"{self._round}"
        if self._round:  # rank 0 has read what was set in the round before
            store.delete_key(f"{self._round - 1}/{self.rank}")
        self._set(f"{key}/{self.rank}", value)
        store.add(f"{key}/count", 1)
        begun_s = self._now()
        while True:
            if self._is_time():
                if self.rank == 0 and store.add(f"{key}/count", 0) == self._world:
                    values = store.multi_get([f"{key}/{rank}" for rank in range(self._world)])
                    self._set(f"{key}/all", combine([*map(pickle.loads, values)]))
                if store.check([f"{key}/all"]):
                    break
                if store.check(["left"]):
                    raise RanksDisagree(store.get("left").decode())
                if self._now() - begun_s > _TIMEOUT_S:
                    self.leave(f"{self._missing(key)} did not answer for {_TIMEOUT_S:.0f} s")
            yield
        self._round += 1
        return pickle.loads(store.get(f"{key}/all"))

    def others_wait(self) -> bool:
        return self._is_time() and self._store.add(f"{self._round}/count", 0) > 0

    def call(self) -> None:
        self._store.add(f"call/{self._calls}", 1)

    def called(self) -> bool:
        if not self._is_time() or not self._store.add(f"call/{self._calls}", 0):
            return False
        self._calls += 1
        return True

    def leave(self, reason: str) -> None:
        if not self._store.check(["left"]):  # the first reason is that of all
            self._store.set("left", reason)

    def _set(self, key: str, value: Any) -> None:
        self._store.set(key, cast(str, pickle.dumps(value)))  # it takes bytes, too

    def _is_time(self) -> bool:
        """Return whether to ask the store again, which takes a round trip."""
        now = self._now()
        if now - self._polled_s < _POLL_S:
            return False
        self._polled_s = now
        return True

    def _missing(self, key: str) -> str:
        missing = [n for n in range(self._world) if not self._store.check([f"{key}/{n}"])]
        names = ", ".join(map(str, missing[:3])) + (", …" if len(missing) > 3 else "")
        return f"rank {names}"


def find_ranks(name: str) -> Ranks:
    """Return the ranks of the job that this process is part of.

    Args:
        name: Of the loader; the same in all ranks.

    Raises:
        RanksDisagree: There are several ranks, and they have no store.
    """
    started = distributed.is_available() and distributed.is_initialized()
    if started:
        rank, world = distributed.get_rank(), distributed.get_world_size()
    else:
        rank, world = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    if world == 1:
        return OneRank()
    from torch.distributed.distributed_c10d import PrefixStore, _get_default_store

    store = _get_default_store() if started else _torchrun_store()
    if store is None:
        raise RanksDisagree(
            "it is of one of several ranks, which have neither a process group nor torchrun's store"
        )
    return JobRanks(PrefixStore(f"pipeprof/tune/{name}", store), rank, world)


def _torchrun_store() -> Store | None:
    """Return the store through which torchrun starts its process group."""
    if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True":
        return None
    from torch.distributed import TCPStore  # type: ignore[attr-defined]
    from torch.distributed.distributed_c10d import PrefixStore

    host, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    store = TCPStore(host, port, is_master=False, timeout=timedelta(seconds=10))
    return PrefixStore(f"attempt_{attempt}", store)
