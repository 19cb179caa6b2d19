"""Figures go to a receiver of OTLP, and what it refuses is logged and counted."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)

from pipeprof.loaders.live.otlp import Otlp


@contextmanager
def receiver(answer: int = 200) -> Iterator[tuple[str, list[ExportMetricsServiceRequest]]]:
    """A receiver of OTLP over HTTP, and what it received."""
    received: list[ExportMetricsServiceRequest] = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            received.append(ExportMetricsServiceRequest.FromString(body))
            self.send_response(answer)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Receiver) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/v1/metrics", received
        server.shutdown()


def points(request: ExportMetricsServiceRequest) -> dict[str, list[tuple[dict[str, str], float]]]:
    found = {}
    for metric in request.resource_metrics[0].scope_metrics[0].metrics:
        data = metric.sum if metric.HasField("sum") else metric.gauge
        found[metric.name] = [
            ({each.key: each.value.string_value for each in point.attributes}, point.as_double)
            for point in data.data_points
        ]
    return found


def test_a_collector_receives_gauges_and_sums_by_otlp() -> None:
    with receiver() as (url, received):
        sink = Otlp(url, {"host": "h"})
        for batches in (3.0, 7.0):
            sink.send("train", {"batches_total": batches, "stages/fetch/mean_s": 0.5})
            assert sink.wait()
    resource = {each.key: each.value.string_value
                for each in received[-1].resource_metrics[0].resource.attributes}  # fmt: skip
    assert resource.items() >= {"service.name": "pipeprof", "host": "h"}.items()
    found = points(received[-1])
    assert found["pipeprof.batches_total"] == [({"loader": "train"}, 7.0)]
    assert found["pipeprof.stages_mean_s"] == [({"loader": "train", "stage": "fetch"}, 0.5)]
    assert (sink.tried, sink.failed) == (2, 0)


def test_a_receiver_that_refuses_is_logged_once_and_counted(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    with receiver(400) as (url, received):
        sink = Otlp(url.replace("//", "//user:hunter2@"), {})
        for _ in range(3):
            sink.send("train", {"batches_total": 7.0})
            assert sink.wait()
        sink.close()
    assert len(received) == 3
    away, lost = (each.getMessage() for each in caplog.records if each.levelname == "WARNING")
    assert away.startswith("the OTLP receiver takes no exports")
    assert lost == "3 of 3 exports did not arrive."
    assert "hunter2" not in caplog.text
    assert capsys.readouterr().err == "", "the handlers of the user show it"
