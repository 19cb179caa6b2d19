"""Read attributes of a user's objects safely."""

from __future__ import annotations

import logging
from typing import Any

from pipeprof.log import log_caught

_log = logging.getLogger(__name__)


def safe_getattr(thing: Any, name: str) -> Any:
    """Return the attribute ``name``; ``None`` if there is none, or reading it raises any error."""
    try:
        return getattr(thing, name, None)
    except Exception as error:
        log_caught(_log, error, f"the attribute {name} is not known")
        return None
