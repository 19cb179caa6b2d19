"""Export the figures of a run every few seconds, to files, Prometheus or OpenTelemetry."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from time import perf_counter
from typing import TYPE_CHECKING

from pipeprof.errors import UsageError
from pipeprof.loaders.live.periodic import Periodic
from pipeprof.loaders.live.sinks import FigureSink, make_sink

if TYPE_CHECKING:
    from pipeprof.loaders.live.periodic import LivePass

EXPORT_S = 15.0
"""Seconds between two exports where none are given."""


class Exporter(Periodic):
    """Sends the figures of all loaders of a process to one sink."""

    def __init__(
        self, sink: FigureSink, every_s: float = EXPORT_S, now: Callable[[], float] = perf_counter
    ) -> None:
        super().__init__(now)
        self._sink, self._every_s = sink, every_s

    def end(self, live_pass: LivePass) -> None:
        """Export the last figures of a pass that ends."""
        if id(live_pass) in self._open_passes and not self._silent:
            self.show(live_pass)
        super().end(live_pass)

    @property
    def _interval_s(self) -> float:
        return self._every_s

    def _show(self, live_pass: LivePass) -> None:
        self._sink.send(live_pass.name, live_pass.metrics())


@cache
def exporter(export: str, every_s: float = EXPORT_S) -> Exporter:
    """Return the exporter that all loaders of this process share.

    Raises:
        UsageError: ``export`` names no known form, or a package for it is missing.
    """
    if not every_s > 0:
        raise UsageError(f"an export every {every_s} s is not possible; give a time above 0")
    return Exporter(make_sink(export), every_s)
