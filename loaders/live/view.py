"""Show a run while it continues, at the bottom of the terminal or as lines of a log.

The training loop itself paints the view, after a batch, when enough time has passed. A thread would
make Python warn of forks. So while the loop stands still, the view does, too.
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
    from pipeprof.loaders.instrument.iterator import PassOwner
    from pipeprof.loaders.live.metrics import LiveFigures
    from pipeprof.measure.loader_pass import Pass

_log = logging.getLogger(__name__)

REPAINT_S = 1.0
"""Fewest seconds between two repaints of the panel."""
LINE_S = 10.0
"""Fewest seconds between two lines, where there is no terminal."""
MOST_SHARE = 0.002
"""Most of the run's time that the view may take, as a share. A repaint takes about 3 ms, because
its code and data are in no cache. Slower ones are rarer."""


@cache
def live_view() -> Live:
    """Return the view of this process, which all loaders share."""
    return Live(sys.stderr)


class Live:
    """Shows one loader at a time: the one that delivered the batch when the view is due."""

    def __init__(
        self, file: TextIO, line_s: float = LINE_S, now: Callable[[], float] = perf_counter
    ) -> None:
        self.now = now
        self.due_s = inf
        """When to show the figures next; infinite while there is nothing to show."""
        self.line_s = line_s
        self._file = file
        self._process = os.getpid()
        self._region = TerminalRegion.of(file) if _is_first_rank() else None
        self._silent = not _is_first_rank()
        self._open_passes: set[int] = set()
        """The `id` of each pass that has begun and not ended."""
        self._lock = Lock()
        self._has_shown = False
        """Whether it was shown before; the first time takes longest, and predicts no other."""
        atexit.register(self.close)

    def begin(self, live_pass: LivePass) -> None:
        """Show ``live_pass`` from now on."""
        if self._silent or os.getpid() != self._process:
            return
        self._open_passes.add(id(live_pass))
        if self.due_s == inf:
            self.due_s = self.now() + self._interval_s

    def end(self, live_pass: LivePass) -> None:
        """End a pass; when all have ended, the terminal is as it was before."""
        self._open_passes.discard(id(live_pass))
        if not self._open_passes:
            self.close()

    def show(self, live_pass: LivePass) -> None:
        """Show the figures of ``live_pass`` now. An error here must not disturb the training."""
        began_s = self.now()
        self.due_s = began_s + self._interval_s
        if os.getpid() != self._process:
            self.due_s = inf
        elif self._lock.acquire(blocking=False):
            try:
                self._show(live_pass)
            except RuntimeError:
                raise  # torch's signal handler raises it anywhere when a worker has died
            except Exception as error:
                log_caught(_log, error, "the live view has ended")
                self._silent, self.due_s = True, inf
                self.close()
            finally:
                duration_s = self.now() - began_s
                live_pass.figures.spent_s += duration_s
                if self._has_shown:
                    self.due_s = max(self.due_s, began_s + duration_s / MOST_SHARE)
                self._has_shown = True
                self._lock.release()

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


class LivePass(TimedPass):
    """A `TimedPass` that shows its figures in a live view whenever that is due."""

    __slots__ = ("_live", "_view", "figures")

    def __init__(
        self,
        iterator: Iterator[Any],
        owner: PassOwner,
        loader_pass: Pass,
        observer: Observer,
        live: Live,
        figures: LiveFigures,
        view: LiveView,
    ) -> None:
        """Begin to show the pass; ``view`` holds what is known before the first batch."""
        super().__init__(iterator, owner, loader_pass, observer)
        self._live, self.figures, self._view = live, figures, view
        live.begin(self)

    def take(self) -> Any:
        """Return the next batch."""
        batch = super().take()
        live = self._live
        if live.now() >= live.due_s:
            live.show(self)
        return batch

    def view(self) -> LiveView:
        """Return the figures that are known by now."""
        self._pass.flush()
        return self.figures.complete(
            replace(self._view, batches=self.delivered, only_timed=self.only_timed)
        )

    def _leave(self) -> None:
        super()._leave()
        self._live.end(self)


def _is_first_rank() -> bool:
    """Return whether this is rank 0 of torchrun; the loaders of other ranks are much the same."""
    return os.environ.get("RANK", "0") in ("", "0")
