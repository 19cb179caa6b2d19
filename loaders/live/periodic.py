"""Do something with the figures of a run from time to time, between two batches.

The training loop itself does it, after a batch, when enough time has passed. A thread would make
Python warn of forks. So while the loop stands still, nothing is shown.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from dataclasses import replace
from math import inf
from threading import Lock
from time import perf_counter
from typing import TYPE_CHECKING

from pipeprof.loaders.instrument.iterator import TimedPass
from pipeprof.log import log_caught
from pipeprof.report.live import LiveView

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from pipeprof.loaders.instrument.inline_observer import Observer
    from pipeprof.loaders.instrument.iterator import PassOwner
    from pipeprof.loaders.live.metrics import LiveFigures
    from pipeprof.measure.loader_pass import Pass

_log = logging.getLogger(__name__)

MOST_SHARE = 0.002
"""Most of the run's time that this may take, as a share. A repaint takes about 3 ms, because its
code and data are in no cache. Slower ones are rarer."""


class Periodic:
    """Shows the loader that delivered the batch when the next time is due."""

    def __init__(self, now: Callable[[], float] = perf_counter) -> None:
        self.now = now
        self.due_s = inf
        """When to show the figures next; infinite while there is nothing to show."""
        self._silent = False
        self._process = os.getpid()
        self._open_passes: set[int] = set()
        """The `id` of each pass that has begun and not ended."""
        self._lock = Lock()
        self._has_shown = False
        """Whether it was shown before; the first time takes longest, and predicts no other."""

    def begin(self, live_pass: LivePass) -> None:
        """Show ``live_pass`` from now on."""
        if self._silent or os.getpid() != self._process:
            return
        self._open_passes.add(id(live_pass))
        if self.due_s == inf:
            self.due_s = self.now() + self._interval_s

    def end(self, live_pass: LivePass) -> None:
        """End a pass; when all have ended, nothing is shown any more."""
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
            except Exception as error:
                if _is_of_torch(error):
                    raise
                log_caught(_log, error, "the live figures have ended")
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
        """Clean up when all passes have ended. Another pass may begin later."""

    @property
    def _interval_s(self) -> float:
        raise NotImplementedError

    def _show(self, live_pass: LivePass) -> None:
        raise NotImplementedError


def _is_of_torch(error: Exception) -> bool:
    """Return whether torch's signal handler raised it, as it does anywhere when a worker died."""
    return isinstance(error, RuntimeError) and "DataLoader worker" in str(error)


class LivePass(TimedPass):
    """A `TimedPass` whose figures are shown whenever that is due."""

    __slots__ = ("_live", "_view", "figures")

    def __init__(
        self,
        iterator: Iterator[Any],
        owner: PassOwner,
        loader_pass: Pass,
        observer: Observer,
        live: Periodic,
        figures: LiveFigures,
        view: LiveView,
    ) -> None:
        """Begin to show the pass; ``view`` holds what is known before the first batch."""
        super().__init__(iterator, owner, loader_pass, observer)
        self._live, self.figures, self._view = live, figures, view
        live.begin(self)

    @property
    def name(self) -> str:
        """The name of the loader."""
        return self._view.name

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

    def metrics(self) -> dict[str, float]:
        """Return the figures that are known by now, by their names in `pipeprof.Profile.metrics`,
        and running totals."""
        self._pass.flush()
        return self.figures.metrics() | {"epoch": self._view.epoch}

    def last_metrics(self) -> Callable[[], dict[str, float]]:
        """Return a function for `metrics` after the pass has ended, which does not keep it."""
        fill, figures, epoch = self._pass.fill_ended, self.figures, self._view.epoch

        def metrics() -> dict[str, float]:
            fill()
            return figures.metrics() | {"epoch": epoch}

        return metrics

    def _leave(self) -> None:
        super()._leave()
        self._live.end(self)
