"""A view of the run while it goes on, at the bottom of the terminal or as lines of a log.

It is painted by the training loop itself, when a batch has come and enough time has passed: there
is no thread, of which a fork would warn. So while the loop stands still, the view does, too.
"""

from __future__ import annotations

import atexit
import logging
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import cache
from math import inf
from threading import Lock
from time import perf_counter
from typing import TYPE_CHECKING, TextIO

from pipeprof.loaders.instrument.iterator import TimedPass
from pipeprof.loaders.live.terminal_region import TerminalRegion
from pipeprof.log import log_caught
from pipeprof.report.live import LiveView, line, panel
from pipeprof.report.text import to_ascii

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from pipeprof.loaders.instrument.inline_observer import Observer
    from pipeprof.loaders.instrument.iterator import Finder
    from pipeprof.loaders.live.metrics import LiveFigures
    from pipeprof.measure.loader_pass import Pass

_log = logging.getLogger(__name__)

REPAINT_S = 1.0
"""Between two paintings at least."""
LINE_S = 10.0
"""Between two lines, where there is no terminal."""
SHARE = 0.002
"""Of the time that showing may take: a painting takes some 3 ms, as it finds its code and data in
no cache, and is the rarer the longer it takes."""


@cache
def live_view() -> Live:
    """That of this process: a terminal has one bottom."""
    return Live(sys.stderr)


class Live:
    """Shows the loader that was iterated last, of however many there are."""

    def __init__(
        self, file: TextIO, line_s: float = LINE_S, now: Callable[[], float] = perf_counter
    ) -> None:
        self.now = now
        self.due_s = inf
        """When to show something again."""
        self.line_s = line_s
        self._file = file
        self._process = os.getpid()
        self._screen = TerminalRegion.of(file) if _is_first_rank() else None
        self._silent = not _is_first_rank()
        self._under_way: set[int] = set()
        """`id` of each pass that is shown by turns."""
        self._lock = Lock()
        self._has_shown = False
        """The first time takes longer than any other, once: it says nothing of the next."""
        atexit.register(self.close)

    def begin(self, turn: LivePass) -> None:
        """A pass begins."""
        if self._silent or os.getpid() != self._process:
            return
        self._under_way.add(id(turn))
        if self.due_s == inf:
            self.due_s = self.now() + self._pause_s

    def end(self, turn: LivePass) -> None:
        """The pass has ended, or was left: the terminal is as before when all have."""
        self._under_way.discard(id(turn))
        if not self._under_way and self._screen is not None:
            self._screen.close()

    def show(self, turn: LivePass) -> None:
        """It is time to. Whatever fails in here must not disturb the training."""
        began_s = self.now()
        self.due_s = began_s + self._pause_s
        if os.getpid() != self._process:
            self.due_s = inf
        elif self._lock.acquire(blocking=False):
            try:
                self._show(turn)
            except RuntimeError:
                raise  # of torch's handler, where a worker has died: it raises wherever we are
            except Exception as error:
                log_caught(_log, error, "the live view has ended")
                self._silent, self.due_s = True, inf
                self.close()
            finally:
                took_s = self.now() - began_s
                turn.figures.spent_s += took_s
                if self._has_shown:
                    self.due_s = max(self.due_s, began_s + took_s / SHARE)
                self._has_shown = True
                self._lock.release()

    def close(self) -> None:
        """Leave the terminal as it was."""
        if self._screen is not None:
            self._screen.close()

    @property
    def _pause_s(self) -> float:
        return self.line_s if self._screen is None else REPAINT_S

    def _show(self, turn: LivePass) -> None:
        view = turn.view()
        if self._screen is None:
            print(f"pipeprof: {self._shown(line(view))}", file=self._file, flush=True)
            return
        rows = panel(view, self._screen.width, self._screen.color)
        self._screen.show([self._shown(row) for row in rows])

    def _shown(self, text: str) -> str:
        """As the other side can show it."""
        with suppress(UnicodeEncodeError):
            text.encode(getattr(self._file, "encoding", None) or "ascii")
            return text
        return to_ascii(text)


class LivePass(TimedPass):
    """Hands out what `TimedPass` does, and shows how it goes now and then."""

    __slots__ = ("_live", "_view", "figures")

    def __init__(
        self,
        iterator: Iterator[Any],
        finder: Finder,
        turn: Pass,
        observer: Observer,
        live: Live,
        figures: LiveFigures,
        view: LiveView,
    ) -> None:
        """``view``: what it shows before the first batch."""
        super().__init__(iterator, finder, turn, observer)
        self._live, self.figures, self._view = live, figures, view
        live.begin(self)

    def take(self) -> Any:
        """The next batch."""
        batch = super().take()
        live = self._live
        if live.now() >= live.due_s:
            live.show(self)
        return batch

    def view(self) -> LiveView:
        """What is known by now."""
        self._pass.flush()
        return self.figures.of_now(
            replace(self._view, batches=self.delivered, in_stretches=self.in_stretches)
        )

    def _leave(self) -> None:
        super()._leave()
        self._live.end(self)


def _is_first_rank() -> bool:
    """Of those that torchrun started: the others' loaders are much the same."""
    return os.environ.get("RANK", "0") in ("", "0")
