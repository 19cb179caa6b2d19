"""The dashboard shows a real training through a real Prometheus; Grafana knows its fields."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote
from urllib.request import urlopen

import pytest

from tests.support.env import UNWATCHED
from tests.support.requirements import missing
from tests.support.wait import comes

TRAINING = """
import sys, time
from torch.utils.data import DataLoader, Dataset
import pipeprof
from pipeprof.loaders.live import periodic

periodic.MOST_SHARE = 1.0  # export as often as asked, whatever share of the time that takes

class Slow(Dataset):
    def __len__(self):
        return 1000

    def __getitem__(self, index):
        time.sleep(0.02)
        return index

if __name__ == "__main__":
    exported = {"export": f"prometheus:{sys.argv[1]}", "export_every": 0.2}
    train = pipeprof.wrap(DataLoader(Slow(), 2, num_workers=1), "train", **exported)
    valid = pipeprof.wrap(DataLoader(Slow(), 1, sampler=range(10)), "valid", **exported)
    while True:
        for number, _ in enumerate(train):
            time.sleep(0.005)
            if number % 20 == 0:
                for _ in valid:
                    time.sleep(0.001)
"""
"""A batch takes 40 ms to make and 5 ms to train on; every 20 batches, a validation takes 0.2 s.
Both loaders are exported to one port."""
SCRAPE_S, WINDOW_S = 0.5, 10
TRAINS = f'changes(pipeprof_batches_total{{loader="train"}}[{WINDOW_S}s]) >= 8'
"""Of the 20 scrapes of the window, so many found new batches."""
PLAUSIBLE = {
    "Share of the time that the accelerator waits": (0.3, 1.0),
    "Samples per second": (10.0, 100.0),
    "What it waits for": (0.0, 1.0),
    "Mean time of a stage per batch": (0.0, 1.0),
    "Batches that are ready": (0.0, 2.0),
    "Share of the time in pauses: validation, checkpoints": (0.05, 0.7),
}
"""The least and the most that each panel may show of the training, however busy the machine is."""


class Prometheus:
    """A running server, by its HTTP API."""

    def __init__(self, port: int) -> None:
        self._url = f"http://127.0.0.1:{port}"

    def ready(self) -> bool:
        try:
            with urlopen(f"{self._url}/-/ready", timeout=10) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def get(self, path: str) -> Any:
        with urlopen(f"{self._url}/api/v1/{path}", timeout=30) as answer:
            return json.load(answer)["data"]

    def query(self, expression: str) -> list[tuple[dict[str, str], float]]:
        result = self.get(f"query?query={quote(expression)}")["result"]
        return [(each["metric"], float(each["value"][1])) for each in result]


def free_port() -> int:
    with HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as free:
        return free.server_port


@contextmanager
def running(command: list[str], log: Path) -> Iterator[None]:
    with log.open("w") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file, env=UNWATCHED)
        try:
            yield
            assert process.poll() is None, log.read_text()[-4000:]
        finally:
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """A Prometheus that has scraped a training for some seconds."""
    program = shutil.which("prometheus")
    if program is None:
        missing("no Prometheus to scrape an export (Debian: apt-get install prometheus)")
    folder, exported, port = tmp_path_factory.mktemp("prometheus"), free_port(), free_port()
    config = {
        "global": {"scrape_interval": f"{int(SCRAPE_S * 1000)}ms"},
        "scrape_configs": [
            {"job_name": "train", "static_configs": [{"targets": [f"127.0.0.1:{exported}"]}]}
        ],
    }
    (folder / "prometheus.yml").write_text(json.dumps(config))  # which is YAML, too
    (folder / "train.py").write_text(TRAINING)
    server = Prometheus(port)
    command = [
        program, f"--config.file={folder}/prometheus.yml",
        f"--storage.tsdb.path={folder}/data", f"--web.listen-address=127.0.0.1:{port}",
    ]  # fmt: skip
    with (
        running([sys.executable, str(folder / "train.py"), str(exported)], folder / "train.log"),
        running(command, folder / "prometheus.log"),
    ):
        assert comes(server.ready), (folder / "prometheus.log").read_text()[-4000:]
        assert comes(lambda: server.query(TRAINS)), (folder / "train.log").read_text()[-4000:]
        yield server


@pytest.fixture(scope="module")
def dashboard(repo: Path) -> Any:
    return json.loads((repo / "docs" / "grafana.json").read_text())


def shown(panel: Any, loader: str, prometheus: Prometheus) -> list[tuple[dict[str, str], float]]:
    """The lines of a panel: labels and last value."""
    (target,) = panel["targets"]
    expression = target["expr"].replace("$__rate_interval", f"{WINDOW_S}s")
    found = prometheus.query(expression.replace("$loader", loader))
    label, *_ = (each.strip("{}") for each in target["legendFormat"].split())
    assert all(metric.get(label) for metric, _ in found), "each line has a name"
    return found


@pytest.mark.parametrize("title", PLAUSIBLE)
def test_each_panel_has_plausible_figures(
    title: str, prometheus: Prometheus, dashboard: Any
) -> None:
    (panel,) = (each for each in dashboard["panels"] if each["title"] == title)
    found = [value for _, value in shown(panel, "train", prometheus)]
    low, high = PLAUSIBLE[title]
    assert low <= min(found) <= max(found) <= high, found
    assert max(found) > 0
    assert len(shown(panel, "train|valid", prometheus)) >= len(found)


def test_no_panel_is_left_out(dashboard: Any) -> None:
    assert {each["title"] for each in dashboard["panels"]} == PLAUSIBLE.keys()


def test_what_a_starved_training_waits_for_is_its_worker(
    prometheus: Prometheus, dashboard: Any
) -> None:
    found = shown(dashboard["panels"][2], "train", prometheus)
    causes = {metric["cause"]: value for metric, value in found}
    assert max(causes, key=lambda cause: causes[cause]) in ("fetch", "worker-blocked"), causes
    assert sum(causes.values()) == pytest.approx(1.0)


def test_loaders_can_be_chosen(prometheus: Prometheus, dashboard: Any) -> None:
    (variable,) = (v for v in dashboard["templating"]["list"] if v["name"] == "loader")
    metric, label = variable["query"].removeprefix("label_values(").rstrip(")").split(", ")
    assert prometheus.get(f"label/{label}/values?match[]={metric}") == ["train", "valid"]


def lost(written: Any, read: Any, path: str = "") -> Iterator[str]:
    """The places of ``written`` that are not in ``read``."""
    if isinstance(written, dict) and isinstance(read, dict):
        for name, value in written.items():
            yield from lost(value, read.get(name), f"{path}/{name}")
    elif isinstance(written, list) and isinstance(read, list) and len(written) == len(read):
        for number, (one, other) in enumerate(zip(written, read, strict=True)):
            yield from lost(one, other, f"{path}/{number}")
    elif written != read:
        yield path


def through_grafana(dashboard: Any) -> Any:
    """``dashboard`` as Grafana's own types read and write it; they leave out what they lack."""
    try:
        from grafana_foundation_sdk.cog.encoder import JSONEncoder
        from grafana_foundation_sdk.cog.plugins import register_default_plugins
        from grafana_foundation_sdk.models.dashboard import Dashboard
    except ImportError:
        missing("no grafana-foundation-sdk, which has Grafana's types (Python 3.11)")
    register_default_plugins()
    return json.loads(JSONEncoder().encode(Dashboard.from_json(dashboard)))


def test_grafana_knows_every_field(dashboard: Any) -> None:
    assert [*lost(dashboard, through_grafana(dashboard))] == []
    dashboard["panels"][1]["targets"][0]["legend"] = "{{loader}}"
    assert [*lost(dashboard, through_grafana(dashboard))] == ["/panels/1/targets/0/legend"]
