"""Set up the logger ``pipeprof``, which is silent unless ``PIPEPROF_LOG`` or the user enables it.

A failure of pipeprof must not disturb a training, so many errors are caught inside it. Each of them
is logged in one line that says what is missing because of it. The user's own logging does not
change: pipeprof adds no handler to the root logger, and its own only when ``PIPEPROF_LOG`` is set.
"""

from __future__ import annotations

import logging
import os
import re
import sys
from contextlib import suppress
from traceback import walk_tb
from types import TracebackType

from pipeprof.errors import PipeprofError

SWITCH = "PIPEPROF_LOG"
LEVELS = ("debug", "info", "warning", "error")

_BUILTIN_ERRORS = (AttributeError, ImportError, ModuleNotFoundError, NameError, TypeError)
"""Errors whose messages name only types and attributes. Others may quote a URL or a key."""
_URL = re.compile(r"\S+://\S+")
_MAX_CHARACTERS = 200


def log_caught(
    log: logging.Logger, error: BaseException, missing: str, level: int = logging.DEBUG
) -> None:
    """Log that ``error`` was caught. ``missing`` says what is not done or known because of it."""
    if log.isEnabledFor(level):
        # as text: a stored record must not keep the error's frames alive
        log.log(level, "%s: %s", missing, describe_error(error), stacklevel=2)


class suppress_and_log:  # noqa: N801  (used like `contextlib.suppress`)
    """Suppress every `Exception` of the body, and log what is missing because of it."""

    __slots__ = ("_log", "_missing")

    def __init__(self, log: logging.Logger, missing: str) -> None:
        self._log, self._missing = log, missing

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        if not isinstance(error, Exception):
            return False
        log_caught(self._log, error, self._missing)
        return True


def say(line: str) -> None:
    """Print a line to stderr, which the script may have closed."""
    with suppress(AttributeError, OSError, ValueError):
        print(f"pipeprof: {line}", file=sys.stderr)


def warn(log: logging.Logger, line: str) -> None:
    """Log what the user has to know, and print it to stderr where no handler shows it."""
    if log.isEnabledFor(logging.WARNING):
        log.warning("%s", line, stacklevel=2)
        if not _is_shown(log):
            say(line)


def _is_shown(log: logging.Logger | None) -> bool:
    """Return whether a handler of ``log`` shows warnings."""
    while log is not None:
        shown = (not isinstance(each, logging.NullHandler) for each in log.handlers
                 if each.level <= logging.WARNING)  # fmt: skip
        if any(shown):
            return True
        log = log.parent if log.propagate else None
    return False


def describe_error(error: BaseException) -> str:
    """Return one line: the type of the error, its message as far as that is free of secrets, and
    where it was raised."""
    text = _message_without_secrets(error)
    parts = type(error).__name__, f": {text}" if text else "", _raised_at(error)
    return "".join(parts)


def _message_without_secrets(error: BaseException) -> str:
    if isinstance(error, OSError):
        return os.strerror(error.errno) if error.errno else ""
    if isinstance(error, PipeprofError) or type(error) in _BUILTIN_ERRORS:
        return _URL.sub("(a URL)", " ".join(str(error).split()))[:_MAX_CHARACTERS]
    return ""


def _raised_at(error: BaseException) -> str:
    frames = list(walk_tb(error.__traceback__))
    if not frames:
        return ""
    frame, line = frames[-1]
    return f" at {os.path.basename(frame.f_code.co_filename)}:{line}"


class _Stderr(logging.Handler):
    """A handler that writes to the current `sys.stderr`, which a program may replace."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            if sys.stderr is not None:
                sys.stderr.write(f"{self.format(record)}\n")
                sys.stderr.flush()
        except Exception:  # a closed stderr must not disturb the training
            pass


def set_up() -> None:
    """Show the messages that ``PIPEPROF_LOG`` asks for; none where it is not set.

    This is called once, when pipeprof is imported. A forked worker inherits the handler, and a
    spawned one imports pipeprof itself.
    """
    root = logging.getLogger("pipeprof")
    root.addHandler(logging.NullHandler())
    level = os.environ.get(SWITCH, "").strip()
    if not level:
        return
    known = level.lower() in LEVELS
    handler = _Stderr()
    handler.setFormatter(logging.Formatter("%(levelname)s %(name)s [%(process)d] %(message)s"))
    root.addHandler(handler)
    root.setLevel(level.upper() if known else logging.WARNING)
    root.propagate = False  # else the user's handlers would show each line again
    if not known:
        root.warning(
            "%s=%s is not a level; use one of %s. Warnings are shown.",
            SWITCH, level[:40], ", ".join(LEVELS),
        )  # fmt: skip
