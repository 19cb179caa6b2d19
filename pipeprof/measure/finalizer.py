"""A ``__del__`` that is safe while Python shuts down."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any


def finalizer(close: Callable[[Any], None]) -> Callable[[Any], None]:
    """Return ``close`` as a ``__del__``, which does nothing at interpreter exit. By then Python has
    set the globals of modules to ``None``, and the system closes what the process has open."""
    exiting = sys.is_finalizing  # a global would be None by then

    def finalize(self: Any) -> None:
        if not exiting():
            close(self)

    return finalize
