"""Do something with the figures of a run from time to time, between two batches.

The training loop itself does it, after a batch, when enough time has passed. A thread would make
Python warn of forks. So while the loop stands still, nothing is shown.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from math import inf
from threading import Lock
from time import perf_counter
from typing import TYPE_CHECKING

from pipeprof.log import log_caught

if TYPE_CHECKING:
    from pipeprof.loaders.live.live_pass import LivePass

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
                live_pass.add_cost(duration_s)
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
