"""The lowest rows of a terminal, kept for us while everything else goes on above them.

The rows are taken out of the region that scrolls (DECSTBM). So whoever writes to the terminal, be
it the script, its workers or a library in C, writes where it would without us, and no write need be
known or held back. Each painting is one write, after which the cursor is where it was.

A signal that ends the process is left alone, so the rows then stay at the bottom until somebody
types `reset`. Only Ctrl-Z has a handler, because the process goes on after it.
"""

from __future__ import annotations

import os
import select
import signal
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, TextIO

_LEAST_ABOVE = 8
"""Rows that are left to the script."""
_LAST_S = 1.0
"""How long to wait for a terminal that takes nothing, to give its rows back."""
_SAVE, _RESTORE = "\x1b7", "\x1b8"
_WHOLE = "\x1b[r"
"""The region that scrolls is the whole screen."""


class TerminalRegion:
    """Of one process; a process that is forked from it paints nothing."""

    def __init__(self, descriptor: int, color: bool = False, encoding: str = "utf-8") -> None:
        """``descriptor`` must be that of a terminal; it is looked at anew for each panel."""
        self.color = color
        self._descriptor = descriptor
        self._held: int | None = None
        """Our own, of the terminal in which rows are kept: the script may close or redirect its."""
        self._encoding = encoding
        self._rest = b""
        """What the terminal has not taken yet."""
        self._process = os.getpid()
        self._kept: tuple[os.terminal_size, int] | None = None
        """The screen's size, and how many rows are ours; ``None``: none are."""

    @classmethod
    def of(cls, file: TextIO) -> TerminalRegion | None:
        """Of the terminal that ``file`` is; ``None`` where that is none, or cannot be steered."""
        try:
            if not file.isatty() or os.environ.get("TERM", "dumb") == "dumb":
                return None
            color = not os.environ.get("NO_COLOR")
            return cls(file.fileno(), color, file.encoding or "ascii")
        except (AttributeError, OSError, ValueError):  # closed, or no file of the system's
            return None

    @property
    def width(self) -> int:
        """Columns there are."""
        return self._size.columns - 1

    def show(self, lines: Sequence[str]) -> None:
        """``lines``, each no wider than `width`, in place of what was shown; nothing while there is
        no room, or the terminal is another's, or it does not take what is written."""
        if os.getpid() != self._process or not self._is_ours():
            return
        size = self._size
        if size.lines < len(lines) + _LEAST_ABOVE:
            self.close()
            return
        text, before, wanted = "", self._kept, (size, len(lines))
        if before != wanted:
            text = self._let_go(size) + self._keep(size, len(lines))
            self._held = self._opened() if self._held is None else self._held
            self._mind_ctrl_z()
        first = size.lines - len(lines) + 1
        rows = (f"\x1b[{first + n};1H\x1b[2K\x1b[m{line}" for n, line in enumerate(lines))
        self._kept = wanted  # before they are: Ctrl-C may come in between
        if not self._write(text + _SAVE + "".join(rows) + _RESTORE):
            self._kept = before

    def close(self) -> None:
        """Give the rows back, empty. Safe to be called at any time."""
        if self._kept is None or os.getpid() != self._process:
            return
        with suppress(OSError, ValueError):  # the terminal may be gone
            self._write(self._let_go(self._size), wait_s=_LAST_S)
        self._kept = None
        if self._held is not None:
            os.close(self._held)
        self._held, self._rest = None, b""
        self._forget_ctrl_z()

    def _keep(self, size: os.terminal_size, height: int) -> str:
        """Make room below the cursor, and take it out of what scrolls: that moves the cursor."""
        room = "\x1bD" * height + f"\x1b[{height}A"
        return f"{room}{_SAVE}\x1b[1;{size.lines - height}r{_RESTORE}"

    def _let_go(self, size: os.terminal_size) -> str:
        if self._kept is None:
            return ""
        before, height = self._kept
        if size != before:  # where our rows have come to lie, only the terminal knows: below
            return f"{_SAVE}{_WHOLE}{_RESTORE}{_SAVE}\x1b[m\x1b[J{_RESTORE}"
        return f"{_SAVE}\x1b[{size.lines - height + 1};1H\x1b[m\x1b[J{_WHOLE}{_RESTORE}"

    @property
    def _terminal(self) -> int:
        return self._descriptor if self._held is None else self._held

    @property
    def _size(self) -> os.terminal_size:
        return os.get_terminal_size(self._terminal)

    def _is_ours(self) -> bool:
        """Not while we are in the background."""
        try:
            return os.tcgetpgrp(self._terminal) == os.getpgrp()
        except OSError:  # it is nobody's
            return True

    def _opened(self) -> int:
        """The terminal, once more: the training never waits for one that takes nothing."""
        try:
            flags = os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC
            return os.open(f"/proc/self/fd/{self._descriptor}", flags)
        except OSError:  # it is another user's, or there is no /proc
            return os.dup(self._descriptor)

    def _write(self, text: str, wait_s: float = 0.0) -> bool:
        """False where nothing could be written. What is begun goes before all that comes later."""
        data = self._rest + text.encode(self._encoding, "replace")
        ready = select.poll()
        ready.register(self._terminal, select.POLLOUT)
        if not ready.poll(wait_s * 1000):
            return False
        try:
            self._rest = data[os.write(self._terminal, data) :]
        except BlockingIOError:
            return False
        return True

    def _mind_ctrl_z(self) -> None:
        """Give the rows back before the process is stopped, because the shell writes there then. A
        handler of the script's own stays."""
        with suppress(ValueError):  # not in the main thread
            if signal.getsignal(signal.SIGTSTP) == signal.SIG_DFL:
                signal.signal(signal.SIGTSTP, self._stop)

    def _forget_ctrl_z(self) -> None:
        in_main = threading.current_thread() is threading.main_thread()
        if in_main and signal.getsignal(signal.SIGTSTP) == self._stop:
            signal.signal(signal.SIGTSTP, signal.SIG_DFL)

    def _stop(self, number: int, frame: Any) -> None:
        self.close()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)


def _leave_nothing_to_children() -> None:
    """A worker that hangs in C is stopped at once, as ever: Python's handler would wait for it."""
    if getattr(signal.getsignal(signal.SIGTSTP), "__func__", None) is TerminalRegion._stop:
        with suppress(ValueError):  # forked by a thread
            signal.signal(signal.SIGTSTP, signal.SIG_DFL)


os.register_at_fork(after_in_child=_leave_nothing_to_children)
