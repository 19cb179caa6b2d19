"""A ``__del__`` that is safe while Python shuts down."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any


def finalizer(close: Callable[[Any], None]) -> Callable[[Any], None]:
    """``close`` for a ``__del__``; at interpreter exit it does nothing.

    By then Python has set the globals of modules to ``None``, so nothing that ``close`` calls can
    be relied on; and the system takes back all that a process has open.
    """
    exiting = sys.is_finalizing  # in a closure, as a global would be None as well

    def finalize(self: Any) -> None:
        if not exiting():
            close(self)

    return finalize
