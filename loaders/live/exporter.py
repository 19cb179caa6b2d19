"""Export the figures of a run every few seconds, to files, Prometheus or OpenTelemetry."""

from __future__ import annotations

import atexit
import logging
import os
from collections.abc import Callable
from functools import cache
from time import perf_counter
from typing import TYPE_CHECKING

from pipeprof.errors import UsageError
from pipeprof.loaders.live.periodic import Periodic
from pipeprof.loaders.live.sinks import FigureSink, make_sink
from pipeprof.log import suppress_and_log

if TYPE_CHECKING:
    from pipeprof.loaders.live.live_pass import LivePass

_log = logging.getLogger(__name__)

EXPORT_S = 15.0
"""Seconds between two exports where none are given."""


class Exporter(Periodic):
    """Sends the figures of all loaders of a process to one sink."""

    def __init__(
        self, sink: FigureSink, every_s: float = EXPORT_S, now: Callable[[], float] = perf_counter
    ) -> None:
        super().__init__(now)
        self._sink, self._every_s = sink, every_s
        self._last: dict[str, Callable[[], dict[str, float]]] = {}
        """What to export next of each loader that ended a pass after its last export."""
        atexit.register(self.finish)

    def end(self, live_pass: LivePass) -> None:
        """End a pass. Its last figures are exported when any loader is, or at the end."""
        if id(live_pass) in self._open_passes and not self._silent:
            self._last[live_pass.name] = live_pass.last_metrics()
            if self.now() >= self.due_s:
                self.show(live_pass)
        super().end(live_pass)

    def finish(self) -> None:
        """Export what is left, at the end of the process."""
        if os.getpid() == self._process and not self._silent:
            with suppress_and_log(_log, "the last figures are not exported"):
                self._send_ended()
                self._sink.close()

    @property
    def _interval_s(self) -> float:
        return self._every_s

    def _show(self, live_pass: LivePass) -> None:
        self._last.pop(live_pass.name, None)
        self._sink.send(live_pass.name, live_pass.metrics())
        self._send_ended()  # a short validation may never deliver the batch at which one is due

    def _send_ended(self) -> None:
        ended, self._last = self._last, {}
        for name, metrics in ended.items():
            self._sink.send(name, metrics())


@cache
def exporter(export: str, every_s: float = EXPORT_S) -> Exporter:
    """Return the exporter that all loaders of this process share.

    Raises:
        UsageError: ``export`` names no known form, or a package for it is missing.
    """
    if not every_s > 0:
        raise UsageError(f"an export every {every_s} s is not possible; give a time above 0")
    return Exporter(make_sink(export), every_s)
