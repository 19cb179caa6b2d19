"""Say something to the user of a training framework, in a line on stderr."""

from __future__ import annotations

import re
import sys
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version


def warn_if_too_old(package: str, least: str) -> None:
    """Say so where a framework is older than the least version that this package works with."""
    with suppress(PackageNotFoundError):
        found = version(package)
        if _release(found) < _release(least):
            say(f"{package} {found} is too old to be profiled as a whole; {least} or newer is.")


def _release(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", text)[:2])


def say(line: str) -> None:
    """Print a line to stderr, which the script may have closed."""
    with suppress(OSError, ValueError):
        print(f"pipeprof: {line}", file=sys.stderr)
