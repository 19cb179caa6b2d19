"""Figures are exported while a run continues, and the run is as without that."""

from __future__ import annotations

import io
import json
import re
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from prometheus_client.parser import text_string_to_metric_families
from torch.utils.data import DataLoader

import pipeprof
from pipeprof.errors import OutputError, UsageError
from pipeprof.loaders.live.exporter import Exporter
from pipeprof.loaders.live.live_pass import LiveLoader
from pipeprof.loaders.live.sinks import JsonLines, Prometheus, labelled, make_sink
from pipeprof.loaders.live.view import Live
from pipeprof.measure.clock import FakeClock
from scripts.grafana import dashboard
from tests.loaders.forms import SAMPLES, Marked, profiled

BATCHES = SAMPLES // 4
FIGURES = {"loader": "train", "batches_total": 7.0, "stages/fetch/mean_s": 0.5}


class Kept:
    """A sink that keeps what it is sent."""

    def __init__(self) -> None:
        self.sent: list[dict[str, float]] = []

    def send(self, loader, figures):
        self.sent.append({"loader": loader, **figures})

    def close(self):
        pass


def exported(clock, every_s, workers=0, epochs=1):
    """The exports of epochs whose steps take a second."""
    sink = Kept()
    exporter = Exporter(sink, every_s, clock.now)
    loader = profiled(DataLoader(Marked(), 4, num_workers=workers), clock)
    loader._profiler.live = LiveLoader("train", [exporter])
    for _ in range(epochs):
        for _ in loader:
            clock.sleep(1.0)
    exporter.finish()
    return sink.sent, loader.profile()


def test_figures_are_exported_every_so_often_and_at_the_end() -> None:
    sent, _ = exported(FakeClock(), every_s=3.0)
    assert [each["batches_total"] for each in sent] == [3, 6, 9, BATCHES]
    assert sent[-1]["samples_total"] == SAMPLES


@pytest.mark.parametrize("workers", [0, 1])
def test_many_short_epochs_are_not_exported_each(workers) -> None:
    sent, _ = exported(FakeClock(), every_s=25.0, epochs=6, workers=workers)
    assert [each["batches_total"] for each in sent] == [25, 50, 6 * BATCHES]


def test_a_validation_between_two_exports_is_exported_with_the_next() -> None:
    clock, sink = FakeClock(), Kept()
    exporter = Exporter(sink, 5.0, clock.now)
    train, valid = (profiled(DataLoader(Marked(), 4), clock) for _ in range(2))
    for name, loader in {"train": train, "valid": valid}.items():
        loader._profiler.live = LiveLoader(name, [exporter])
    for number, _ in enumerate(train):
        clock.sleep(1.0)
        if number == 1:
            assert sum(1 for _ in valid) == BATCHES, "in no time, so none is due"
    exporter.finish()
    sent = [(each["loader"], each["batches_total"]) for each in sink.sent]
    assert sent[:2] == [("train", 5), ("valid", BATCHES)]
    assert sent[-1] == ("train", BATCHES)


def test_figures_have_the_names_and_values_of_the_profiles_metrics() -> None:
    sent, profile = exported(FakeClock(), every_s=100.0, workers=2)
    last, whole = sent[-1], profile.metrics("")
    own = {"loader", "epoch"} | {name for name in last if name.endswith("_total")}
    assert own < last.keys()
    assert {name for name in last if name.startswith("stages/")} <= whole.keys()
    assert last["stages/step/mean_s"] == pytest.approx(whole["stages/step/mean_s"], rel=0.01)
    assert last["starved_fraction"] == pytest.approx(whole["starved_fraction"], abs=0.05)


@pytest.mark.parametrize("error", [OSError("disk full"), RuntimeError("can't start new thread")])
def test_an_error_of_the_sink_ends_the_export_and_not_the_training(error) -> None:
    class Broken(Kept):
        def send(self, loader, figures):
            super().send(loader, figures)
            raise error

    sink, clock = Broken(), FakeClock()
    loader = profiled(DataLoader(Marked(), 4), clock)
    loader._profiler.live = LiveLoader("train", [Exporter(sink, 1.0, clock.now)])
    assert sum(1 for _ in loader if clock.sleep(1.0) is None) == BATCHES
    assert len(sink.sent) == 1


def test_lines_of_json_are_appended_and_their_file_is_bounded(tmp_path, monkeypatch) -> None:
    file = tmp_path / "new" / "metrics.jsonl"
    for _ in range(2):
        JsonLines(str(file), {"rank": "3"}).send("train", {"batches_total": 7.0})
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [(each["loader"], each["rank"], each["batches_total"]) for each in lines] == [
        ("train", "3", 7.0)
    ] * 2
    monkeypatch.setattr("pipeprof.loaders.live.sinks.MOST_BYTES", 100)
    sink = JsonLines(str(file), {})
    for _ in range(20):
        sink.send("train", {"batches_total": 7.0})
    assert sorted(each.name for each in file.parent.iterdir()) == [
        "metrics.jsonl", "metrics.jsonl.1",
    ]  # fmt: skip
    assert Path(f"{file}.1").stat().st_size < 500


@pytest.mark.parametrize("make", [JsonLines, lambda file, labels: Prometheus(file, None, labels)])
def test_a_process_without_a_loader_leaves_no_file(tmp_path, make) -> None:
    """A launcher exports nothing; an earlier file, and figures that were sent, stay."""
    earlier = tmp_path / "earlier"
    earlier.touch()
    make(str(tmp_path / "unused"), {})
    make(str(earlier), {})
    make(str(tmp_path / "used"), {}).send("train", {"batches_total": 7.0})
    assert {each.name for each in tmp_path.iterdir()} == {"earlier", "used"}


def families(text: str) -> dict[str, Any]:
    return {each.name: each for each in text_string_to_metric_families(text)}


def test_prometheus_reads_the_text_file(tmp_path) -> None:
    file = tmp_path / "pipeprof.prom"
    sink = Prometheus(str(file), None, {"host": "h"})
    sink.send("train", {"batches_total": 7.0, "stages/fetch/mean_s": 0.5})
    sink.send("val", {"batches_total": 2.0})
    found = families(file.read_text())
    batches, fetch = found["pipeprof_batches"], found["pipeprof_stages_mean_s"]
    assert (batches.type, fetch.type) == ("counter", "gauge")
    assert {each.labels["loader"]: each.value for each in batches.samples} == {
        "train": 7.0, "val": 2.0,
    }  # fmt: skip
    assert fetch.samples[0].labels == {"loader": "train", "stage": "fetch", "host": "h"}


def test_prometheus_scrapes_the_endpoint() -> None:
    with HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as free:
        port = free.server_port
    sink = Prometheus("", port, {})
    sink.send("train", {"starved_fraction": 0.25})
    with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        found = families(answer.read().decode())
    assert found["pipeprof_starved_fraction"].samples[0].value == 0.25
    with pytest.raises(OutputError, match=f"port {port} cannot be used"):
        Prometheus("", port, {})


@pytest.mark.parametrize(
    ("export", "error", "message"),
    [
        ("graphite", UsageError, "write jsonl"),
        ("https://user:secret@host", UsageError, "'https' is nothing"),
        ("jsonl:/proc/no/file", OutputError, "/proc/no/file cannot be written: "),
        ("prometheus:/proc/no/file", OutputError, "/proc/no/file cannot be used: "),
    ],
)
def test_what_cannot_be_exported_to_is_said_before_anything_runs(export, error, message) -> None:
    with pytest.raises(error, match=message):
        pipeprof.wrap([1], export=export)


def test_a_missing_package_is_named(monkeypatch) -> None:
    make_sink.cache_clear()
    for module in ("prometheus_client", "prometheus_client.core", "opentelemetry.sdk.metrics"):
        monkeypatch.setitem(sys.modules, module, None)
    for export, extra in (("prometheus:9", "prometheus"), ("otlp", "otel")):
        with pytest.raises(UsageError, match=rf"pip install 'pipeprof\[{extra}\]'"):
            make_sink(export)


def test_a_loader_is_shown_and_exported_at_once() -> None:
    """Each comes as often as alone, and says the same."""
    clock, sink, lines = FakeClock(), Kept(), io.StringIO()
    loader = profiled(DataLoader(Marked(), 4), clock)
    outputs = [Live(lines, 3.0, clock.now), Exporter(sink, 4.0, clock.now)]
    loader._profiler.live = LiveLoader("train", outputs)
    assert sum(1 for _ in loader if clock.sleep(1.0) is None) == BATCHES
    assert [each["batches_total"] for each in sink.sent] == [4, 8]
    shown = re.findall(r"epoch 1: (\d+) of 10 batches", lines.getvalue())
    assert shown == ["4", "7", "10"], "the loop is at the next batch"


def test_wrap_takes_live_and_export_together(tmp_path) -> None:
    loader = pipeprof.wrap([1], live=True, export=f"jsonl:{tmp_path}/m.jsonl")
    assert [type(each) for each in loader._profiler.live.outputs] == [Live, Exporter]


def test_if_one_output_fails_the_other_continues() -> None:
    class Broken(Kept):
        def send(self, loader, figures):
            raise OSError("disk full")

    clock, sink = FakeClock(), Kept()
    loader = profiled(DataLoader(Marked(), 4), clock)
    outputs = [Exporter(each, 3.0, clock.now) for each in (Broken(), sink)]
    loader._profiler.live = LiveLoader("train", outputs)
    assert sum(1 for _ in loader if clock.sleep(1.0) is None) == BATCHES
    assert [each["batches_total"] for each in sink.sent] == [3, 6, 9]


@pytest.mark.parametrize(
    ("flat", "name", "labels"),
    [
        ("starved_fraction", "starved_fraction", {}),
        ("queue/mean", "queue_mean", {}),
        ("blame/worker-cpu", "blame", {"cause": "worker-cpu"}),
        ("stages/h2d/p95_s", "stages_p95_s", {"stage": "h2d"}),
    ],
)
def test_stages_and_causes_are_labels(flat, name, labels) -> None:
    assert labelled(flat) == (name, labels)


def test_the_dashboard_is_what_its_script_writes_and_asks_for_what_is_exported(repo) -> None:
    """Else: make docs."""
    text = (repo / "docs" / "grafana.json").read_text()
    assert json.loads(text) == dashboard()
    (last, *_), _ = exported(FakeClock(), every_s=100.0, workers=2)
    names = {f"pipeprof_{labelled(name).name}" for name in last if name != "loader"}
    assert set(re.findall(r"pipeprof_[a-z_]+", text)) <= names
