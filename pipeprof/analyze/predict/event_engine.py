"""Simulated time: processes that take turns on resources which they share.

A process is a generator. It yields what it waits for: ``(resource, amount)``, until the resource
has given it that much, or a `Mailbox`, until something lies in it. Nothing here knows what is
simulated, and nothing is timed: the same processes give the same moments.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterable
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import count
from math import inf
from typing import Any, TypeAlias

Wanted: TypeAlias = "tuple[Shared | Lock, float] | Mailbox"
Process: TypeAlias = Generator[Wanted, None, Any]


class Shared:
    """Capacity that its users share evenly, none faster than ``each``: processor sharing.

    CPU cores: ``total`` of them, ``each`` 1, amounts in seconds. A link: ``total`` and ``each`` of
    its streams in bytes per second, amounts in bytes. Time that passes for all side by side:
    ``total`` infinite, ``each`` 1.
    """

    def __init__(self, total: float = inf, each: float = 1.0) -> None:
        self._total, self._each = total, each
        self._given = 0.0
        """What each user was given that has been here all the time."""
        self._users: list[tuple[float, int, Process]] = []
        """A heap: what is given when that user has got its amount, order of arrival, user."""
        self._arrivals = count()
        self._speed = each
        """What each user is given per second, as `due_s` found it."""

    def add(self, amount: float, process: Process) -> None:
        heappush(self._users, (self._given + amount, next(self._arrivals), process))

    def due_s(self) -> float:
        """Seconds until something happens here, if nobody comes."""
        if not self._users:
            return inf
        self._speed = self._rate()
        return (self._users[0][0] - self._given) / self._speed

    def pass_s(self, seconds: float) -> None:
        """Let time pass, at most until something is due, as `due_s` was just asked."""
        if self._users and seconds:
            self._given += self._speed * seconds

    def happen(self) -> Process | None:
        """Let happen what is due. Returns the process that has got all it wanted."""
        self._given, _, process = heappop(self._users)
        if not self._users:
            self._given = 0.0  # small numbers are exact
        return process

    def _rate(self) -> float:
        """Of each user."""
        shared = self._total / len(self._users)
        return shared if shared < self._each else self._each


class Cores(Shared):
    """CPU cores that slow each other down: with all of them busy, each has ``contention_factor`` of
    the speed that one has alone, because they share caches, memory and hyper-threads."""

    def __init__(self, total: float, contention_factor: float = 1.0) -> None:
        super().__init__(total)
        self._cores, self._lost = total, 1.0 - contention_factor

    @property
    def all_busy(self) -> bool:
        """Who comes now does not get one at once."""
        return len(self._users) >= self._cores

    def _rate(self) -> float:
        alone = super()._rate()
        if not self._lost or self._cores <= 1:
            return alone
        busy = min(len(self._users), self._cores)
        return alone * (1.0 - self._lost * max(0.0, (busy - 1) / (self._cores - 1)))


class Locks(Shared):
    """Locks that their owners hold for long while others want them. A wait for one ends after so
    many seconds, or at once when its owner releases it.

    In this manner a Python thread waits for its interpreter: the thread that computes releases it
    every few milliseconds, and whenever it has to wait itself.
    """

    def __init__(self) -> None:
        super().__init__()
        self._waiting: dict[int, list[Process]] = {}
        """By owner; some of them may have got it meanwhile."""
        self._freed: deque[Process] = deque()

    def of(self, owner: int) -> Lock:
        return Lock(self, owner)

    def wait(self, owner: int, amount: float, process: Process) -> None:
        self._waiting.setdefault(owner, []).append(process)
        super().add(amount, process)

    def let_go(self, owner: int) -> None:
        for process in self._waiting.pop(owner, ()):
            kept = [user for user in self._users if user[2] is not process]
            if len(kept) < len(self._users):
                heapify(kept)
                self._users = kept
                self._freed.append(process)

    def due_s(self) -> float:
        return 0.0 if self._freed else super().due_s()

    def happen(self) -> Process | None:
        return self._freed.popleft() if self._freed else super().happen()


@dataclass(frozen=True)
class Lock:
    """One of `Locks`."""

    locks: Locks
    owner: int

    def add(self, amount: float, process: Process) -> None:
        self.locks.wait(self.owner, amount, process)


class TokenBucket(Shared):
    """A shared link that lets ``burst`` bytes pass at ``peak``, and gains them again at ``total``
    while it is used less: how throttled disks, cloud volumes and shaped links behave."""

    def __init__(self, total: float, each: float = inf, burst: float = 0.0, peak: float = 0.0):
        super().__init__(total, each)
        self._burst, self._peak = burst, max(peak, total)
        self._tokens = burst
        self._runs_empty = False
        """Whether this is what happens next."""

    def due_s(self) -> float:
        done_s, empty_s = super().due_s(), self._empty_s()
        self._runs_empty = empty_s < done_s
        return min(done_s, empty_s)

    def pass_s(self, seconds: float) -> None:
        if not seconds:
            return
        if not self._users and self._tokens == self._burst:
            return  # as full as it can be
        drawn = self._speed * len(self._users)
        super().pass_s(seconds)
        self._tokens += (self._total - drawn) * seconds
        self._tokens = min(self._burst, max(0.0, self._tokens))

    def happen(self) -> Process | None:
        if self._runs_empty:  # and is slower from now on
            self._tokens = 0.0
            return None
        return super().happen()

    def _rate(self) -> float:
        total = self._peak if self._tokens > 0 else self._total
        return min(self._each, total / len(self._users))

    def _empty_s(self) -> float:
        if not self._users or self._tokens <= 0:
            return inf
        net = self._speed * len(self._users) - self._total
        return self._tokens / net if net > 0 else inf


class Mailbox:
    """Things that processes leave for others, first come first served."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._things: deque[Any] = deque()
        self._waiting: deque[Process] = deque()

    def put(self, thing: Any) -> None:
        self._things.append(thing)
        if self._waiting:
            self._world.wake(self._waiting.popleft(), self)

    def take(self) -> Any:
        """To be called by whoever has waited for it."""
        return self._things.popleft()

    def __len__(self) -> int:
        return len(self._things)

    def wait(self, process: Process) -> None:
        self._waiting.append(process)


class World:
    """Time, and all that shares it."""

    def __init__(self, resources: Iterable[Shared]) -> None:
        self.now = 0.0
        """Seconds."""
        self._resources = tuple(resources)
        self._awake: deque[tuple[Process, Mailbox | None]] = deque()

    def wake(self, process: Process, mailbox: Mailbox | None = None) -> None:
        """Let ``process`` continue after those that were woken before. If nothing is left for it in
        ``mailbox`` by then, it waits there again."""
        self._awake.append((process, mailbox))

    def run(self, leading: Process) -> None:
        """Until ``leading`` ends, or nothing can happen any more."""
        self.wake(leading)
        while True:
            while self._awake:
                process, mailbox = self._awake.popleft()
                if mailbox is not None and not len(mailbox):
                    mailbox.wait(process)
                elif self._advance(process) and process is leading:
                    return
            next_s, resource = inf, None
            for each in self._resources:
                due_s = each.due_s()
                if due_s < next_s:
                    next_s, resource = due_s, each
            if resource is None:
                return
            self.now += next_s
            for each in self._resources:
                each.pass_s(next_s)
            done = resource.happen()
            if done is not None:
                self.wake(done)

    @staticmethod
    def _advance(process: Process) -> bool:
        """Let ``process`` continue until it must wait. Returns whether it has ended."""
        for wanted in process:
            if isinstance(wanted, Mailbox):
                if not len(wanted):
                    wanted.wait(process)
                    return False
            elif wanted[1] > 0:
                wanted[0].add(wanted[1], process)
                return False
        return True
