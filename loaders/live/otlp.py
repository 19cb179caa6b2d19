"""Send exported figures to an OpenTelemetry collector, by OTLP over HTTP.

The metrics are built by the OpenTelemetry SDK and sent by its exporter, in a thread of our own. The
SDK's own thread would be started again in each forked worker, and export there, too. While the
collector is away, only the latest figures wait, and the training never does.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from contextlib import suppress
from queue import Empty, Full, Queue
from typing import Any

from pipeprof.errors import UsageError
from pipeprof.loaders.live.sinks import labelled
from pipeprof.log import log_caught, warn

_log = logging.getLogger(__name__)

TIMEOUT_S = 5.0
"""Most seconds that one export may take, and that the process waits for the last one."""


class Otlp:
    """Sends gauges, and totals as counters, each with the attribute ``loader``."""

    def __init__(self, url: str | None, labels: Mapping[str, str]) -> None:
        try:
            from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
            from opentelemetry.sdk.metrics import MeterProvider
            from opentelemetry.sdk.metrics.export import InMemoryMetricReader
            from opentelemetry.sdk.resources import Resource
        except ModuleNotFoundError:
            raise UsageError(
                "an export by OTLP needs packages: pip install 'pipeprof[otel]'"
            ) from None
        self.failed = 0
        """Exports that did not arrive."""
        self.tried = 0
        self._exporter = OTLPMetricExporter(url, timeout=TIMEOUT_S)
        self._reader = InMemoryMetricReader()
        resource = Resource.create({"service.name": "pipeprof", **labels})
        provider = MeterProvider([self._reader], resource, shutdown_on_exit=False)
        self._meter = provider.get_meter("pipeprof")
        self._instruments: dict[str, Any] = {}
        self._last: dict[tuple[str, str], float] = {}
        """The last value of each total, by loader and name."""
        self._waiting: Queue[Any] = Queue(maxsize=1)
        self._sender: threading.Thread | None = None
        self._idle = threading.Event()
        self._idle.set()

    def send(self, loader: str, figures: Mapping[str, float]) -> None:
        for flat, value in figures.items():
            name, labels = labelled(flat)
            self._set(f"pipeprof.{name}", value, {"loader": loader, **labels})
        if self._sender is None:
            self._begin()
        data = self._reader.get_metrics_data()
        self._idle.clear()
        with suppress(Full):
            self._waiting.put_nowait(data)
            return
        if self._drop_waiting():  # the latest figures replace those that wait
            self._count(False)
        self._waiting.put_nowait(data)

    def _set(self, name: str, value: float, attributes: dict[str, str]) -> None:
        total = name.endswith("_total")
        if name not in self._instruments:
            create = self._meter.create_counter if total else self._meter.create_gauge
            self._instruments[name] = create(name)
        if total:
            key = attributes["loader"], name
            self._instruments[name].add(max(0.0, value - self._last.get(key, 0.0)), attributes)
            self._last[key] = value
        else:
            self._instruments[name].set(value, attributes)

    def _begin(self) -> None:
        self._sender = threading.Thread(target=self._run, name="pipeprof-otlp", daemon=True)
        for name in ("opentelemetry", "urllib3"):
            _quiet(name, self._sender)
        self._sender.start()

    def _run(self) -> None:
        while True:
            data = self._waiting.get()
            try:
                arrived = self._exporter.export(data, timeout_millis=TIMEOUT_S * 1000)
                self._count(arrived.name == "SUCCESS")
            except Exception as error:
                log_caught(_log, error, "an export did not arrive")
                self._count(False)
            if self._waiting.empty():
                self._idle.set()

    def _count(self, arrived: bool) -> None:
        self.tried += 1
        if not arrived:
            self.failed += 1
            if self.failed == 1:
                warn(_log, "the OTLP receiver takes no exports; they are dropped until it does.")

    def _drop_waiting(self) -> bool:
        with suppress(Empty):
            self._waiting.get_nowait()
            return True
        return False

    def wait(self) -> bool:
        """Wait for the last export. Return whether it ended in time."""
        return self._idle.wait(TIMEOUT_S)

    def close(self) -> None:
        """Wait for the last export, and say how many did not arrive."""
        self.wait()
        if self.failed:
            warn(_log, f"{self.failed} of {self.tried} exports did not arrive.")


def _quiet(logger: str, thread: threading.Thread) -> None:
    """Drop what ``logger``'s children log in ``thread``, where `Otlp` counts failures instead."""
    for name in list(logging.root.manager.loggerDict):
        if name.startswith(logger):
            logging.getLogger(name).addFilter(lambda record: record.threadName != thread.name)
