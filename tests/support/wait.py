"""Waiting for what comes in time: at once on a quiet machine, later on one that is busy."""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE_S = 30.0
"""Longer than any machine should need. Whoever waits so long in vain has found a fault."""


def comes(condition: Callable[[], object]) -> bool:
    """Whether ``condition`` holds, now or before patience ends."""
    end = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True
