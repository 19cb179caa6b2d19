"""Run commands in a real pseudo-terminal, and read what a person would see."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from tests.support.requirements import missing
from tests.support.wait import PATIENCE_S

try:
    import pyte
except ImportError:
    pyte = None

_OURS = re.compile(rb"(?:(?:\x1bD)+\x1b\[\d+A)?\x1b7.*?\x1b8", re.DOTALL)


class Terminal:
    """A terminal of ``rows`` × ``columns`` that also keeps the lines that have scrolled away."""

    def __init__(self, rows: int = 24, columns: int = 80) -> None:
        if pyte is None:
            missing("pyte, which shows what a terminal shows")
        self._screen = pyte.HistoryScreen(columns, rows, history=10_000)
        self._stream = pyte.ByteStream(self._screen)
        self.controller, self.device = pty.openpty()
        self.raw = b""
        """All bytes written to the terminal."""
        self.resize(rows, columns)

    def resize(self, rows: int, columns: int) -> None:
        size = struct.pack("HHHH", rows, columns, 0, 0)
        fcntl.ioctl(self.controller, termios.TIOCSWINSZ, size)
        self._screen.resize(rows, columns)

    def read(self, wait_s: float = 0.0) -> bool:
        """Read what has been written, and return whether there was anything."""
        if not select.select([self.controller], [], [], wait_s)[0]:
            return False
        data = b""
        with suppress(OSError):  # nobody holds the other side any more
            data = os.read(self.controller, 1 << 16)
        self.raw += data
        self._stream.feed(data)
        return bool(data)

    def drain(self) -> None:
        while self.read():
            pass

    def shows(self, condition: Callable[[], object]) -> bool:
        """Return whether ``condition`` holds now, or after more output within the time limit."""
        end = time.monotonic() + PATIENCE_S
        while not condition():
            if time.monotonic() > end:
                return False
            self.read(0.05)
        return True

    @property
    def display(self) -> list[str]:
        """Rows of the screen."""
        return [line.rstrip() for line in self._screen.display]

    @property
    def lines(self) -> list[str]:
        """All lines that are not empty, including those that have scrolled away."""
        width = self._screen.columns
        gone = ["".join(row[n].data for n in range(width)) for row in self._screen.history.top]
        return [line.rstrip() for line in [*gone, *self._screen.display] if line.strip()]

    @property
    def is_whole(self) -> bool:
        """Whether the whole screen scrolls."""
        return self._screen.margins is None

    @property
    def theirs(self) -> bytes:
        """All output except that of a `pipeprof.loaders.live.terminal_region.Screen`."""
        return _OURS.sub(b"", self.raw)

    def run(self, command: Sequence[str], folder: Path, env: dict[str, str]) -> subprocess.Popen:  # type: ignore[type-arg]
        """Start ``command`` with this as its controlling terminal."""
        return subprocess.Popen(
            command, cwd=folder, env={**env, "TERM": "xterm-256color"}, start_new_session=True,
            stdin=self.device, stdout=self.device, stderr=self.device,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )  # fmt: skip

    def end(self, process: subprocess.Popen) -> int:  # type: ignore[type-arg]
        """Wait for ``process``, read its remaining output, and return its exit code."""
        assert self.shows(lambda: process.poll() is not None)
        self.drain()
        return int(process.wait())

    def close(self) -> None:
        for descriptor in (self.controller, self.device):
            with suppress(OSError):
                os.close(descriptor)
