"""Where exported figures go: lines of JSON, and Prometheus."""

from __future__ import annotations

import os
import re
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import orjson

from pipeprof.errors import OutputError, UsageError
from pipeprof.measure.job_place import find_job_place

FORMS = "jsonl[:FILE], prometheus[:FILE or :PORT] or otlp[:URL]"
MOST_BYTES = 16_000_000
"""A file of lines is moved aside when it is so large; one such file is kept."""
_HELP = "see pipeprof's guide to monitoring"
_PARTS = {"stages": "stage", "blame": "cause"}
"""The label of the second part of a name, by the first."""


class FigureSink(Protocol):
    """Takes the figures of one loader at a time. Errors other than the first are its own."""

    def send(self, loader: str, figures: Mapping[str, float]) -> None: ...

    def close(self) -> None:
        """Finish what was sent, at the end of the process."""


class Labelled(NamedTuple):
    """The name of a figure as monitoring systems want it."""

    name: str
    labels: dict[str, str]


def labelled(name: str) -> Labelled:
    """Return ``stages/fetch/mean_s`` as ``stages_mean_s`` with the label ``stage="fetch"``.

    Examples:
        >>> labelled("stages/fetch/mean_s")
        Labelled(name='stages_mean_s', labels={'stage': 'fetch'})
    """
    first, *rest = name.split("/")
    label = _PARTS.get(first)
    if label is None or not rest:
        return Labelled(re.sub(r"\W", "_", name), {})
    return Labelled("_".join([first, *rest[1:]]), {label: rest[0]})


@cache
def make_sink(export: str) -> FigureSink:
    """Return the sink that ``export`` names, as `FORMS` says; one for each name.

    Raises:
        UsageError: It names none, or a package for it is missing.
        OutputError: The file or the port cannot be used.
    """
    kind, _, target = export.partition(":")
    labels = {"host": socket.gethostname()}
    if place := find_job_place():
        labels["rank"] = str(place.rank)
    suffix = f".rank{place.rank}" if place else ""
    if kind == "jsonl":
        return JsonLines((target or "pipeprof-metrics.jsonl") + suffix, labels)
    if kind == "prometheus":
        port = int(target) if target.isdecimal() else None
        return Prometheus((target or "pipeprof.prom") + suffix, port, labels)
    if kind == "otlp":
        from pipeprof.loaders.live.otlp import Otlp

        return Otlp(target or None, labels)
    raise UsageError(f"{kind!r} is nothing to export to; write {FORMS}")  # the rest may be secret


@contextmanager
def _unchanged(file: Path) -> Iterator[None]:
    """Remove a file that is new afterwards. A process that starts others may export nothing."""
    is_new = not file.exists()
    yield
    if is_new:
        file.unlink()


class JsonLines:
    """Appends a line for each export. The file is bounded."""

    def __init__(self, file: str, labels: Mapping[str, str]) -> None:
        self._path, self._labels = Path(file), dict(labels)
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with _unchanged(self._path):
                self._path.open("ab").close()
        except OSError as error:
            raise OutputError(f"{file} cannot be written: {error.strerror}.") from None

    def send(self, loader: str, figures: Mapping[str, float]) -> None:
        line = {"time": time.time(), **self._labels, "loader": loader, **figures}
        with self._path.open("ab") as file:
            file.write(orjson.dumps(line) + b"\n")
            size = file.tell()
        if size > MOST_BYTES:
            os.replace(self._path, f"{self._path}.1")

    def close(self) -> None:
        """Nothing is left to be done."""


class Prometheus:
    """Keeps gauges and counters, as a text file for a node exporter, or at an endpoint."""

    def __init__(self, file: str, port: int | None, labels: Mapping[str, str]) -> None:
        try:
            import prometheus_client.core
        except ModuleNotFoundError:
            raise UsageError(
                "an export to Prometheus needs a package: pip install 'pipeprof[prometheus]'"
            ) from None
        self._client, self._labels = prometheus_client, dict(labels)
        self._latest: dict[str, Mapping[str, float]] = {}
        """The last figures of each loader."""
        self._registry = prometheus_client.CollectorRegistry()
        self._registry.register(self)
        self._file = file if port is None else None
        try:
            if port is not None:
                prometheus_client.start_http_server(port, registry=self._registry)
            else:
                Path(file).parent.mkdir(parents=True, exist_ok=True)
                with _unchanged(Path(file)):
                    prometheus_client.write_to_textfile(file, self._registry)
        except OSError as error:
            what = file if port is None else f"port {port}"
            raise OutputError(f"{what} cannot be used: {error.strerror}.") from None

    def send(self, loader: str, figures: Mapping[str, float]) -> None:
        self._latest[loader] = figures
        if self._file is not None:
            self._client.write_to_textfile(self._file, self._registry)

    def close(self) -> None:
        """Nothing is left to be done."""

    def collect(self) -> Iterator[Any]:
        """Yield the families of all figures, as a collector of the client does."""
        core, families = self._client.core, dict[str, Any]()
        for loader, figures in list(self._latest.items()):
            for flat, value in figures.items():
                name, labels = labelled(flat)
                values = {"loader": loader, **labels, **self._labels}
                if name not in families:
                    total = name.endswith("_total")
                    kind = core.CounterMetricFamily if total else core.GaugeMetricFamily
                    families[name] = kind(f"pipeprof_{name}", _HELP, labels=list(values))
                families[name].add_metric(list(values.values()), value)
        return iter(families.values())
