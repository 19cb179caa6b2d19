"""How often, and how long, a request of a remote store is tried again.

This is the only place where that is done: the clients' own retries are off, as two layers of five
attempts would make twenty-five of them.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic, sleep
from typing import TypeVar

from pipeprof.storage.errors import ErrorKind, Failure

T = TypeVar("T")

_MOST_WAIT_S = 10.0


@dataclass(frozen=True)
class RetryPolicy:
    """How long one request is tried again."""

    attempts: int = 5
    """In all, the first included."""
    seconds: float = 120.0
    """From the first attempt on; no other begins later."""
    wait_s: float = 0.1
    """Before the second attempt, less up to half of it by chance; before each that follows twice
    as long."""


@dataclass
class Tries:
    """What one request took, beyond its answer."""

    retries: int = 0
    throttled: int = 0
    """Answers that asked to slow down."""


def retry(attempt: Callable[[], T], policy: RetryPolicy, tries: Tries) -> T:
    """What ``attempt`` returns, which is called again after what may pass. Raises its `Failure`."""
    wait_s, end_s = policy.wait_s, monotonic() + policy.seconds
    while True:
        try:
            return attempt()
        except Failure as failure:
            tries.throttled += failure.kind is ErrorKind.THROTTLED
            # by chance, so that workers refused together do not come back together
            pause_s = wait_s * random.uniform(0.5, 1.0)
            over = tries.retries + 1 >= policy.attempts or monotonic() + pause_s > end_s
            if over or not failure.kind.may_pass:
                raise
        tries.retries += 1
        sleep(pause_s)
        wait_s = min(_MOST_WAIT_S, 2 * wait_s)
