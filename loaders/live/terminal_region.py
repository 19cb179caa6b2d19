"""Reserve the lowest rows of a terminal for a panel, while all other output scrolls above them.

The rows are taken out of the scrolling region (DECSTBM). So the script, its workers and libraries
in C write where they would without a panel, and no output has to be intercepted. Each repaint is
one write, after which the cursor is where it was.

Signals that end the process keep their handlers, so the rows then stay until the user types
`reset`. Only Ctrl-Z gets a handler, because the process continues after it.
"""

from __future__ import annotations

import os
import select
import signal
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, TextIO

_FEWEST_ROWS_ABOVE = 8
"""Fewest rows that the script keeps."""
_CLOSE_WAIT_S = 1.0
"""Seconds to wait for a blocked terminal when its rows are released."""
_SAVE_CURSOR, _RESTORE_CURSOR = "\x1b7", "\x1b8"
_SCROLL_ALL = "\x1b[r"
"""Makes the whole screen the scrolling region."""


class TerminalRegion:
    """The reserved rows of one process; a process that is forked from it paints nothing."""

    def __init__(self, descriptor: int, color: bool = False, encoding: str = "utf-8") -> None:
        """Reserve nothing yet; ``descriptor`` is a terminal's, and is duplicated for each panel."""
        self.color = color
        self._descriptor = descriptor
        self._duplicate: int | None = None
        """Our own descriptor of the terminal; the script may close or redirect the original."""
        self._encoding = encoding
        self._unwritten = b""
        """Bytes that the terminal has not taken yet."""
        self._process = os.getpid()
        self._reserved: tuple[os.terminal_size, int] | None = None
        """The size of the screen and the number of reserved rows; ``None`` without a panel."""

    @classmethod
    def of(cls, file: TextIO) -> TerminalRegion | None:
        """Return a region of ``file``; ``None`` if that is no terminal with cursor control."""
        try:
            if not file.isatty() or os.environ.get("TERM", "dumb") == "dumb":
                return None
            color = not os.environ.get("NO_COLOR")
            return cls(file.fileno(), color, file.encoding or "ascii")
        except (AttributeError, OSError, ValueError):  # a closed file, or one without descriptor
            return None

    @property
    def width(self) -> int:
        """Columns that a line of the panel may have."""
        return self._size.columns - 1

    def show(self, lines: Sequence[str]) -> None:
        """Replace the panel by ``lines``, each no wider than `width`. Nothing is shown while there
        is too little room, while the process is in the background, or while the terminal is
        blocked."""
        if os.getpid() != self._process or not self._in_foreground():
            return
        size = self._size
        if size.lines < len(lines) + _FEWEST_ROWS_ABOVE:
            self.close()
            return
        text, before, wanted = "", self._reserved, (size, len(lines))
        if before != wanted:
            text = self._release(size) + self._reserve(size, len(lines))
            if self._duplicate is None:
                self._duplicate = self._reopen()
            self._handle_ctrl_z()
        first = size.lines - len(lines) + 1
        rows = (f"\x1b[{first + n};1H\x1b[2K\x1b[m{line}" for n, line in enumerate(lines))
        self._reserved = wanted  # set first, because Ctrl-C may interrupt the write
        if not self._write(text + _SAVE_CURSOR + "".join(rows) + _RESTORE_CURSOR):
            self._reserved = before

    def close(self) -> None:
        """Clear and release the rows. It may be called at any time."""
        if self._reserved is None or os.getpid() != self._process:
            return
        with suppress(OSError, ValueError):  # the terminal may be gone
            self._write(self._release(self._size), wait_s=_CLOSE_WAIT_S)
        self._reserved = None
        if self._duplicate is not None:
            os.close(self._duplicate)
        self._duplicate, self._unwritten = None, b""
        self._restore_ctrl_z()

    def _reserve(self, size: os.terminal_size, height: int) -> str:
        """Return text that makes room below the cursor and excludes it from scrolling."""
        room = "\x1bD" * height + f"\x1b[{height}A"
        # setting the scrolling region moves the cursor
        return f"{room}{_SAVE_CURSOR}\x1b[1;{size.lines - height}r{_RESTORE_CURSOR}"

    def _release(self, size: os.terminal_size) -> str:
        """Return text that clears the reserved rows and lets them scroll again."""
        if self._reserved is None:
            return ""
        before, height = self._reserved
        if size != before:  # the terminal has moved our rows, but they are below the cursor
            return (
                f"{_SAVE_CURSOR}{_SCROLL_ALL}{_RESTORE_CURSOR}"
                f"{_SAVE_CURSOR}\x1b[m\x1b[J{_RESTORE_CURSOR}"
            )
        top = size.lines - height + 1
        return f"{_SAVE_CURSOR}\x1b[{top};1H\x1b[m\x1b[J{_SCROLL_ALL}{_RESTORE_CURSOR}"

    @property
    def _terminal(self) -> int:
        return self._descriptor if self._duplicate is None else self._duplicate

    @property
    def _size(self) -> os.terminal_size:
        return os.get_terminal_size(self._terminal)

    def _in_foreground(self) -> bool:
        try:
            return os.tcgetpgrp(self._terminal) == os.getpgrp()
        except OSError:  # no process controls the terminal
            return True

    def _reopen(self) -> int:
        """Return a non-blocking descriptor, so that the training never waits for the terminal."""
        try:
            flags = os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC
            return os.open(f"/proc/self/fd/{self._descriptor}", flags)
        except OSError:  # another user's terminal, or no /proc
            return os.dup(self._descriptor)

    def _write(self, text: str, wait_s: float = 0.0) -> bool:
        """Write what is left of earlier text, then ``text``; False where nothing was written."""
        data = self._unwritten + text.encode(self._encoding, "replace")
        ready = select.poll()
        ready.register(self._terminal, select.POLLOUT)
        if not ready.poll(wait_s * 1000):
            return False
        try:
            self._unwritten = data[os.write(self._terminal, data) :]
        except BlockingIOError:
            return False
        return True

    def _handle_ctrl_z(self) -> None:
        """Release the rows before the process stops, as the shell writes there then. A handler of
        the script is not replaced."""
        with suppress(ValueError):  # not in the main thread
            if signal.getsignal(signal.SIGTSTP) == signal.SIG_DFL:
                signal.signal(signal.SIGTSTP, self._stop)

    def _restore_ctrl_z(self) -> None:
        in_main = threading.current_thread() is threading.main_thread()
        if in_main and signal.getsignal(signal.SIGTSTP) == self._stop:
            signal.signal(signal.SIGTSTP, signal.SIG_DFL)

    def _stop(self, number: int, frame: Any) -> None:
        self.close()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)


def _restore_ctrl_z_in_child() -> None:
    """Remove our handler in a fork: Python would run it only after a call into C returns."""
    if getattr(signal.getsignal(signal.SIGTSTP), "__func__", None) is TerminalRegion._stop:
        with suppress(ValueError):  # forked by a thread
            signal.signal(signal.SIGTSTP, signal.SIG_DFL)


os.register_at_fork(after_in_child=_restore_ctrl_z_in_child)
