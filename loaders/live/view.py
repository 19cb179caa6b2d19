"""Show a run while it continues, at the bottom of the terminal or as lines of a log.

The training loop itself paints the view, after a batch, when enough time has passed. A thread would
make Python warn of forks. So while the loop stands still, the view does, too.
"""

from __future__ import annotations

import atexit
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from time import perf_counter
from typing import TYPE_CHECKING, TextIO

from pipeprof.loaders.live.periodic import Periodic
from pipeprof.loaders.live.terminal_region import TerminalRegion
from pipeprof.measure.job_place import find_job_place
from pipeprof.report.live import line, panel
from pipeprof.report.text import to_ascii

if TYPE_CHECKING:
    from pipeprof.loaders.live.live_pass import LivePass

REPAINT_S = 1.0
"""Fewest seconds between two repaints of the panel."""
LINE_S = 10.0
"""Fewest seconds between two lines, where there is no terminal."""


@cache
def live_view() -> Live:
    """Return the view of this process, which all loaders share."""
    return Live(sys.stderr)


class Live(Periodic):
    """Shows one loader at a time: the one that delivered the batch when the view is due."""

    def __init__(
        self, file: TextIO, line_s: float = LINE_S, now: Callable[[], float] = perf_counter
    ) -> None:
        super().__init__(now)
        self.line_s = line_s
        self._file = file
        self._region = TerminalRegion.of(file) if _is_first_rank() else None
        self._silent = not _is_first_rank()
        atexit.register(self.close)

    def close(self) -> None:
        """Leave the terminal as it was."""
        if self._region is not None:
            self._region.close()

    @property
    def _interval_s(self) -> float:
        return self.line_s if self._region is None else REPAINT_S

    def _show(self, live_pass: LivePass) -> None:
        view = live_pass.view()
        if self._region is None:
            print(f"pipeprof: {self._encodable(line(view))}", file=self._file, flush=True)
            return
        rows = panel(view, self._region.width, self._region.color)
        self._region.show([self._encodable(row) for row in rows])

    def _encodable(self, text: str) -> str:
        """Return ``text``, in ASCII where the file's encoding lacks one of its characters."""
        with suppress(UnicodeEncodeError):
            text.encode(getattr(self._file, "encoding", None) or "ascii")
            return text
        return to_ascii(text)


def _is_first_rank() -> bool:
    """Return whether this is rank 0 of its job; the loaders of other ranks are much the same."""
    place = find_job_place()
    return place is None or place.rank == 0
