"""The logger ``pipeprof``: silent, unless ``PIPEPROF_LOG`` or the user's own set-up shows it.

What pipeprof cannot do must not disturb a training, so many errors end inside it. Each of them is
logged: one line that says what is missing for it. Your own logging stays as it is: there is no
handler on the root logger, and pipeprof's own is there only when ``PIPEPROF_LOG`` asks for it.
"""

from __future__ import annotations

import logging
import os
import re
import sys
from traceback import walk_tb
from types import TracebackType

from pipeprof.errors import PipeprofError

SWITCH = "PIPEPROF_LOG"
LEVELS = ("debug", "info", "warning", "error")

_PYTHONS_OWN = (AttributeError, ImportError, ModuleNotFoundError, NameError, TypeError)
"""Errors whose text names types and attributes. The text of others may quote a URL or a key."""
_URL = re.compile(r"\S+://\S+")
_LONGEST = 200


def log_caught(
    log: logging.Logger, error: BaseException, missing: str, level: int = logging.DEBUG
) -> None:
    """Log that ``error`` ends here. ``missing``: what is not done, or not known, because of it."""
    if log.isEnabledFor(level):
        # as text: a record that somebody keeps must not keep the error's frames alive
        log.log(level, "%s: %s", missing, describe_error(error), stacklevel=2)


class suppress_and_log:  # noqa: N801  (used like `contextlib.suppress`)
    """Let no `Exception` out of the body, and log what is missing for it."""

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


def describe_error(error: BaseException) -> str:
    """One line: the error's kind, what is known to hold no secret of its text, and where it was
    raised."""
    text = _safe_text(error)
    parts = type(error).__name__, f": {text}" if text else "", _place(error)
    return "".join(parts)


def _safe_text(error: BaseException) -> str:
    if isinstance(error, OSError):
        return os.strerror(error.errno) if error.errno else ""
    if isinstance(error, PipeprofError) or type(error) in _PYTHONS_OWN:
        return _URL.sub("(a URL)", " ".join(str(error).split()))[:_LONGEST]
    return ""


def _place(error: BaseException) -> str:
    frames = list(walk_tb(error.__traceback__))
    if not frames:
        return ""
    frame, line = frames[-1]
    return f" at {os.path.basename(frame.f_code.co_filename)}:{line}"


class _Stderr(logging.Handler):
    """Writes to whatever `sys.stderr` is by then."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            if sys.stderr is not None:
                sys.stderr.write(f"{self.format(record)}\n")
                sys.stderr.flush()
        except Exception:  # a closed stderr must not disturb the training
            pass


def set_up() -> None:
    """Show what ``PIPEPROF_LOG`` asks for; nothing where it is not set.

    Called once, when pipeprof is imported. A forked worker inherits the handler, and a spawned one
    imports pipeprof itself.
    """
    root = logging.getLogger("pipeprof")
    root.addHandler(logging.NullHandler())
    wanted = os.environ.get(SWITCH, "").strip()
    if not wanted:
        return
    known = wanted.lower() in LEVELS
    handler = _Stderr()
    handler.setFormatter(logging.Formatter("%(levelname)s %(name)s [%(process)d] %(message)s"))
    root.addHandler(handler)
    root.setLevel(wanted.upper() if known else logging.WARNING)
    root.propagate = False  # else the user's handlers would show each line once more
    if not known:
        root.warning(
            "%s=%s is not a level; use one of %s. Warnings are shown.",
            SWITCH, wanted[:40], ", ".join(LEVELS),
        )  # fmt: skip
