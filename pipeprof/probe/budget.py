"""Limit the bytes and requests of a probe, which cost money in some stores."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Budget:
    """At most so many bytes and requests. Threads share one budget; each process gets a part."""

    def __init__(self, most_bytes: int, most_requests: int) -> None:
        self.bytes = self.requests = 0
        """Bytes and requests taken so far."""
        self.spent = False
        """Whether a request was refused."""
        self._most_bytes, self._most_requests = most_bytes, most_requests
        self._lock = threading.Lock()

    def take(self, size: int) -> bool:
        """Take one more request of ``size`` bytes; return False where the budget refuses it."""
        with self._lock:
            if self.bytes + size > self._most_bytes or self.requests >= self._most_requests:
                self.spent = True
                return False
            self.bytes += size
            self.requests += 1
            return True

    @property
    def left(self) -> tuple[int, int]:
        """Bytes and requests that may still be taken."""
        return self._most_bytes - self.bytes, self._most_requests - self.requests

    def part(self, share: float) -> Budget:
        """Return a ``share`` of what is left; `add` counts what was used of it."""
        left_bytes, left_requests = self.left
        return Budget(int(left_bytes * share), int(left_requests * share))

    def add(self, part: Budget) -> None:
        """Count what was used of a `part`."""
        self.bytes += part.bytes
        self.requests += part.requests
        self.spent |= part.spent

    @contextmanager
    def lend(self, share: float) -> Iterator[Budget]:
        """Yield a `part`, and count what was used of it."""
        part = self.part(share)
        try:
            yield part
        finally:
            self.add(part)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._lock = threading.Lock()
