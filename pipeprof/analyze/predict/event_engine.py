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

Wanted: TypeAlias = "tuple[Time | SharedResource | Lock, float] | Mailbox"
Process: TypeAlias = Generator[Wanted, None, Any]


class Time:
    """Time, which passes for all who wait."""

    def __init__(self) -> None:
        self.due_s = inf
        """Time of the next event here, if nobody arrives; infinite for none."""
        self._users: list[tuple[float, int, Process]] = []
        """A heap of processes: when the wait ends, order of arrival, process."""
        self._arrivals = count()

    def add(self, amount: float, process: Process, now: float) -> int:
        """Let ``process`` wait for ``amount`` seconds. Returns the number of its arrival."""
        number = next(self._arrivals)
        heappush(self._users, (now + amount, number, process))
        self.due_s = self._users[0][0]
        return number

    def fire_due(self, now: float) -> Process | None:
        """Carry out the event that is due. Returns the process whose wait has ended, if any."""
        process = heappop(self._users)[2]
        self.due_s = self._users[0][0] if self._users else inf
        return process


class Locks(Time):
    """Locks that their owners keep for long while others want them. A wait ends after the given
    seconds, or as soon as the owner releases the lock.

    A Python thread waits for its interpreter like this: the thread that computes releases it every
    few milliseconds, and whenever it has to wait itself.
    """

    def __init__(self) -> None:
        super().__init__()
        self._waiting: dict[int, set[int]] = {}
        """Owner → arrivals that wait for its lock, or whose wait has ended meanwhile."""

    def of(self, owner: int) -> Lock:
        """Return the lock of ``owner``."""
        return Lock(self, owner)

    def wait(self, owner: int, seconds: float, process: Process, now: float) -> None:
        """Let ``process`` wait for the lock of ``owner``, at most ``seconds``."""
        number = self.add(seconds, process, now)
        self._waiting.setdefault(owner, set()).add(number)

    def release(self, owner: int) -> None:
        """End all waits for the lock of ``owner``."""
        freed = self._waiting.pop(owner, None)
        if freed:
            ends = [(-inf, *user[1:]) if user[1] in freed else user for user in self._users]
            heapify(ends)
            self._users = ends
            self.due_s = ends[0][0] if ends else inf


@dataclass(frozen=True)
class Lock:
    """The lock of one owner."""

    locks: Locks
    owner: int

    def add(self, amount: float, process: Process, now: float) -> None:
        """Let ``process`` wait for the lock, at most ``amount`` seconds."""
        self.locks.wait(self.owner, amount, process, now)


class SharedResource:
    """A capacity that its users share evenly, none faster than ``each``: processor sharing.

    For CPU cores ``total`` is their number, ``each`` is 1, and amounts are in seconds. For a link
    ``total`` and ``each``, that of a stream, are in bytes per second, and amounts in bytes.
    """

    def __init__(self, total: float = inf, each: float = 1.0) -> None:
        self.due_s = inf
        """Time of the next event here, if no user arrives; infinite for none."""
        self._total, self._each = total, each
        self._served = 0.0
        """Amount that a user present since the start has been served until ``_updated_s``."""
        self._updated_s = 0.0
        """Time of the last event here, or arrival."""
        self._users: list[tuple[float, int, Process]] = []
        """A heap of users: ``_served`` when its amount is reached, order of arrival, process."""
        self._arrivals = count()
        self._speed = each
        """Amount per second of each user since ``_updated_s``."""

    def add(self, amount: float, process: Process, now: float) -> None:
        """Let ``process`` wait until it has been served ``amount``."""
        self._update(now)
        heappush(self._users, (self._served + amount, next(self._arrivals), process))
        self._schedule()

    def fire_due(self, now: float) -> Process | None:
        """Carry out the event that is due. Returns the process that was fully served, if any."""
        self._update(now)
        self._served, _, process = heappop(self._users)
        if not self._users:
            self._served = 0.0  # small numbers are exact
        self._schedule()
        return process

    def _update(self, now: float) -> None:
        """Serve the users for the time since the last event."""
        elapsed_s = now - self._updated_s
        if elapsed_s and self._users:  # a speed may be infinite
            self._served += self._speed * elapsed_s
        self._updated_s = now

    def _schedule(self) -> None:
        """Find the next event, after users have come or gone."""
        if not self._users:
            self.due_s = inf
            return
        self._speed = speed = self._rate(len(self._users))
        self.due_s = self._updated_s + (self._users[0][0] - self._served) / speed

    def _rate(self, users: int) -> float:
        """Return the amount per second of each user."""
        shared = self._total / users
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

    def _rate(self, users: int) -> float:
        alone = super()._rate(users)
        if not self._lost or self._cores <= 1 or users == 1:
            return alone
        busy = users if users < self._cores else self._cores
        return alone * (1.0 - self._lost * (busy - 1) / (self._cores - 1))


class TokenBucket(SharedResource):
    """A shared link that passes ``burst`` bytes at ``peak``, and regains them at ``total`` while it
    is used less. Throttled disks, cloud volumes and shaped links behave like this."""

    def __init__(self, total: float, each: float = inf, burst: float = 0.0, peak: float = 0.0):
        super().__init__(total, each)
        self._burst, self._peak = burst, max(peak, total)
        self._tokens = burst
        self._runs_empty = False
        """Whether the next event is that no tokens are left."""

    def fire_due(self, now: float) -> Process | None:
        if not self._runs_empty:
            return super().fire_due(now)
        self._update(now)
        self._tokens = 0.0  # the link is slower from now on
        self._schedule()
        return None

    def _update(self, now: float) -> None:
        elapsed_s = now - self._updated_s
        if elapsed_s and (self._users or self._tokens < self._burst):
            drawn = self._speed * len(self._users)
            tokens = self._tokens + (self._total - drawn) * elapsed_s
            self._tokens = min(self._burst, max(0.0, tokens))
        super()._update(now)

    def _schedule(self) -> None:
        super()._schedule()
        empty_s = self._updated_s + self._lasts_s()
        self._runs_empty = empty_s < self.due_s
        self.due_s = min(self.due_s, empty_s)

    def _rate(self, users: int) -> float:
        total = self._peak if self._tokens > 0 else self._total
        return min(self._each, total / users)

    def _lasts_s(self) -> float:
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

    def __init__(self, resources: Iterable[Time | SharedResource]) -> None:
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
                if each.due_s < next_s:
                    next_s, resource = each.due_s, each
            if resource is None:
                return
            if next_s > self.now:
                self.now = next_s
            served = resource.fire_due(self.now)
            if served is not None:
                self.wake(served)

    def _advance(self, process: Process) -> bool:
        """Let ``process`` continue until it must wait. Returns whether it has ended."""
        for wanted in process:
            if isinstance(wanted, Mailbox):
                if not len(wanted):
                    wanted.wait(process)
                    return False
            elif wanted[1] > 0:
                wanted[0].add(wanted[1], process, self.now)
                return False
        return True
