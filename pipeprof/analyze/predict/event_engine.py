"""Simulate time: processes wait for resources that they share, and for each other's messages.

A process is a generator. It yields ``(resource, amount)`` to wait until the resource has served it
that amount, or a `Mailbox` to wait for an item. Simulations are deterministic, and this module does
not depend on what is simulated.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterable
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import count
from math import inf
from typing import Any, TypeAlias

Wanted: TypeAlias = "tuple[SharedResource | Lock, float] | Mailbox"
Process: TypeAlias = Generator[Wanted, None, Any]


class SharedResource:
    """A capacity that its users share evenly, none faster than ``each``: processor sharing.

    For CPU cores ``total`` is their number, ``each`` is 1, and amounts are in seconds. For a link
    ``total`` and ``each``, that of a stream, are in bytes per second, and amounts in bytes. For
    time, which passes for all users concurrently, ``total`` is infinite and ``each`` is 1.
    """

    def __init__(self, total: float = inf, each: float = 1.0) -> None:
        self._total, self._each = total, each
        self._served = 0.0
        """Amount that a user present since the start has been served."""
        self._users: list[tuple[float, int, Process]] = []
        """A heap of users: ``_served`` when its amount is reached, order of arrival, process."""
        self._arrivals = count()
        self._speed = each
        """Amount per second of each user, as the last `due_s` found it."""

    def add(self, amount: float, process: Process) -> None:
        """Let ``process`` wait until it has been served ``amount``."""
        heappush(self._users, (self._served + amount, next(self._arrivals), process))

    def due_s(self) -> float:
        """Return the seconds until the next event here, if no user arrives; infinite for none."""
        if not self._users:
            return inf
        self._speed = self._rate()
        return (self._users[0][0] - self._served) / self._speed

    def advance(self, seconds: float) -> None:
        """Let time pass, at most until the next event, as `due_s` has just returned it."""
        if self._users and seconds:
            self._served += self._speed * seconds

    def fire_due(self) -> Process | None:
        """Carry out the event that is due. Returns the process that was fully served, if any."""
        self._served, _, process = heappop(self._users)
        if not self._users:
            self._served = 0.0  # small numbers are exact
        return process

    def _rate(self) -> float:
        """Return the amount per second of each user."""
        shared = self._total / len(self._users)
        return shared if shared < self._each else self._each


class Cores(SharedResource):
    """CPU cores that slow each other down, as they share caches, memory and hyper-threads.

    With all of them busy, each has ``contention_factor`` of the speed that one has alone.
    """

    def __init__(self, total: float, contention_factor: float = 1.0) -> None:
        super().__init__(total)
        self._cores, self._lost = total, 1.0 - contention_factor

    @property
    def all_busy(self) -> bool:
        """Whether no core is free."""
        return len(self._users) >= self._cores

    def _rate(self) -> float:
        alone = super()._rate()
        if not self._lost or self._cores <= 1:
            return alone
        busy = min(len(self._users), self._cores)
        return alone * (1.0 - self._lost * max(0.0, (busy - 1) / (self._cores - 1)))


class Locks(SharedResource):
    """Locks that their owners keep for long while others want them. A wait ends after the given
    seconds, or as soon as the owner releases the lock.

    A Python thread waits for its interpreter like this: the thread that computes releases it every
    few milliseconds, and whenever it has to wait itself.
    """

    def __init__(self) -> None:
        super().__init__()
        self._waiting: dict[int, list[Process]] = {}
        """Owner → processes that wait for its lock, or whose wait has ended meanwhile."""
        self._freed: deque[Process] = deque()
        """Processes whose wait a release has ended."""

    def of(self, owner: int) -> Lock:
        """Return the lock of ``owner``."""
        return Lock(self, owner)

    def wait(self, owner: int, seconds: float, process: Process) -> None:
        """Let ``process`` wait for the lock of ``owner``, at most ``seconds``."""
        self._waiting.setdefault(owner, []).append(process)
        super().add(seconds, process)

    def release(self, owner: int) -> None:
        """End all waits for the lock of ``owner``."""
        for process in self._waiting.pop(owner, ()):
            remaining = [user for user in self._users if user[2] is not process]
            if len(remaining) < len(self._users):
                heapify(remaining)
                self._users = remaining
                self._freed.append(process)

    def due_s(self) -> float:
        return 0.0 if self._freed else super().due_s()

    def fire_due(self) -> Process | None:
        return self._freed.popleft() if self._freed else super().fire_due()


@dataclass(frozen=True)
class Lock:
    """The lock of one owner."""

    locks: Locks
    owner: int

    def add(self, amount: float, process: Process) -> None:
        self.locks.wait(self.owner, amount, process)


class TokenBucket(SharedResource):
    """A shared link that passes ``burst`` bytes at ``peak``, and regains them at ``total`` while it
    is used less. Throttled disks, cloud volumes and shaped links behave like this."""

    def __init__(self, total: float, each: float = inf, burst: float = 0.0, peak: float = 0.0):
        super().__init__(total, each)
        self._burst, self._peak = burst, max(peak, total)
        self._tokens = burst
        self._runs_empty = False
        """Whether the next event is that no tokens are left."""

    def due_s(self) -> float:
        done_s, empty_s = super().due_s(), self._empty_s()
        self._runs_empty = empty_s < done_s
        return min(done_s, empty_s)

    def advance(self, seconds: float) -> None:
        if not seconds:
            return
        if not self._users and self._tokens == self._burst:
            return  # the bucket is full
        drawn = self._speed * len(self._users)
        super().advance(seconds)
        self._tokens += (self._total - drawn) * seconds
        self._tokens = min(self._burst, max(0.0, self._tokens))

    def fire_due(self) -> Process | None:
        if self._runs_empty:  # the link is slower from now on
            self._tokens = 0.0
            return None
        return super().fire_due()

    def _rate(self) -> float:
        total = self._peak if self._tokens > 0 else self._total
        return min(self._each, total / len(self._users))

    def _empty_s(self) -> float:
        """Return the seconds until no tokens are left; infinite where they last."""
        if not self._users or self._tokens <= 0:
            return inf
        net = self._speed * len(self._users) - self._total
        return self._tokens / net if net > 0 else inf


class Mailbox:
    """Items that processes leave for others, first come first served."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._items: deque[Any] = deque()
        self._waiting: deque[Process] = deque()

    def put(self, item: Any) -> None:
        """Leave ``item``, and wake the process that has waited longest."""
        self._items.append(item)
        if self._waiting:
            self._world.wake(self._waiting.popleft(), self)

    def take(self) -> Any:
        """Return the oldest item. Only a process that has waited for it may call this."""
        return self._items.popleft()

    def __len__(self) -> int:
        return len(self._items)

    def wait(self, process: Process) -> None:
        """Let ``process`` wait for an item."""
        self._waiting.append(process)


class World:
    """The simulated time, and the resources and processes in it."""

    def __init__(self, resources: Iterable[SharedResource]) -> None:
        self.now = 0.0
        """Seconds since the start."""
        self._resources = tuple(resources)
        self._awake: deque[tuple[Process, Mailbox | None]] = deque()

    def wake(self, process: Process, mailbox: Mailbox | None = None) -> None:
        """Let ``process`` continue after those that were woken before. If ``mailbox`` is empty by
        then, it waits there again."""
        self._awake.append((process, mailbox))

    def run(self, leading: Process) -> None:
        """Simulate until ``leading`` ends, or no event is due any more."""
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
                each.advance(next_s)
            served = resource.fire_due()
            if served is not None:
                self.wake(served)

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
