"""Repeat failed requests to a remote store.

Requests are repeated only here. The clients' own retries are off, because two layers of five
attempts would make twenty-five.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic, sleep
from typing import TypeVar

from pipeprof.storage.errors import ErrorKind, Failure

T = TypeVar("T")

_MAX_WAIT_S = 10.0


@dataclass(frozen=True)
class RetryPolicy:
    """How often and how long one request is repeated."""

    attempts: int = 5
    """The most attempts, the first included."""
    seconds: float = 120.0
    """The time since the first attempt after which no other attempt begins."""
    wait_s: float = 0.1
    """The wait before the second attempt, doubled before each further one. Each wait is cut at
    random by up to half."""


@dataclass
class Tries:
    """Counts the retries of one request."""

    retries: int = 0
    throttled: int = 0
    """The number of answers that asked to slow down."""


def retry(attempt: Callable[[], T], policy: RetryPolicy, tries: Tries) -> T:
    """Return the result of ``attempt``, called again after each transient `Failure`. Raises the
    last `Failure`."""
    wait_s, end_s = policy.wait_s, monotonic() + policy.seconds
    while True:
        try:
            return attempt()
        except Failure as failure:
            tries.throttled += failure.kind is ErrorKind.THROTTLED
            # random, so that workers refused together do not repeat their requests together
            pause_s = wait_s * random.uniform(0.5, 1.0)
            over = tries.retries + 1 >= policy.attempts or monotonic() + pause_s > end_s
            if over or not failure.kind.is_transient:
                raise
        tries.retries += 1
        sleep(pause_s)
        wait_s = min(_MAX_WAIT_S, 2 * wait_s)
