"""What a probe may read: it costs money in some stores."""

from __future__ import annotations

import threading
from typing import Any


class Budget:
    """So many bytes in so many requests. Threads share one; processes take parts of it."""

    def __init__(self, most_bytes: int, most_requests: int) -> None:
        self.bytes = self.requests = 0
        """So far."""
        self.spent = False
        """Whether a request had to be refused."""
        self._most_bytes, self._most_requests = most_bytes, most_requests
        self._lock = threading.Lock()

    def take(self, size: int) -> bool:
        """Whether one more request of ``size`` is allowed."""
        with self._lock:
            if self.bytes + size > self._most_bytes or self.requests >= self._most_requests:
                self.spent = True
                return False
            self.bytes += size
            self.requests += 1
            return True

    def part(self, share: float) -> Budget:
        """A ``share`` of what is left, in whole requests, to be put back by `add`."""
        return Budget(
            int((self._most_bytes - self.bytes) * share),
            int((self._most_requests - self.requests) * share),
        )

    def add(self, part: Budget) -> None:
        """What was used of a `part`."""
        self.bytes += part.bytes
        self.requests += part.requests
        self.spent |= part.spent

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._lock = threading.Lock()
