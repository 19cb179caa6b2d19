"""The trace in TensorBoard's profiler plugin, queried over HTTP from a real server."""

import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import replace
from urllib.error import URLError
from urllib.request import urlopen

import orjson
import pytest
import torch
from torch.utils.data import DataLoader, Dataset

import pipeprof
from pipeprof.report.trace.chrome import render_trace, tensorboard_name
from tests.support.requirements import missing

_PLUGIN = "data/plugin/pytorch_profiler"
_PATIENCE_S = 90
STEP_S = 0.008


class Slow(Dataset):
    def __len__(self):
        return 400

    def __getitem__(self, index):
        time.sleep(0.003)
        return torch.zeros(4)


@contextmanager
def tensorboard(folder):
    """Start TensorBoard on ``folder`` and yield its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "tensorboard.main", "--logdir", str(folder), "--port",
               str(port), "--load_fast=false"]  # fmt: skip
    with (folder.parent / "log").open("wb") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log)

    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(20)


def ask(server, page):
    """Return the answer of the plugin for ``page``."""
    with urlopen(f"{server}/{_PLUGIN}/{page}", timeout=10) as answer:
        return orjson.loads(answer.read())


def wait_until_loaded(server):
    deadline = time.monotonic() + _PATIENCE_S
    while time.monotonic() < deadline:
        try:
            if ask(server, "runs")["runs"]:
                return
        except (URLError, ConnectionError):
            pass
        time.sleep(0.3)
    raise AssertionError("TensorBoard has not loaded the trace")


@pytest.fixture(scope="module")
def profile():
    loader = pipeprof.wrap(DataLoader(Slow(), 8, num_workers=2), whole=True)
    for _ in loader:
        time.sleep(STEP_S)
    return loader.profile()


def with_accelerator(profile):
    """Return the profile as if an accelerator had been busy during each step."""
    busy = (STEP_S,) * len(profile.batches.index)
    return replace(profile, batches=replace(profile.batches, device_busy_s=busy))


@pytest.mark.timeout(150)
@pytest.mark.parametrize("accelerator", [False, True])
def test_the_plugin_shows_the_same_loader_share_as_the_profile(accelerator, profile, tmp_path):
    try:
        import torch_tb_profiler  # noqa: F401
    except ImportError:
        missing("torch-tb-profiler")
    if accelerator:
        profile = with_accelerator(profile)
    logs = tmp_path / "logs"
    (logs / "run").mkdir(parents=True)
    name = tensorboard_name(profile)
    (logs / "run" / name).write_bytes(render_trace(profile, compressed=True))
    with tensorboard(logs) as server:
        wait_until_loaded(server)
        overview = ask(server, "overview?run=run&worker=loader&span=1&view=Overview")
    columns = [each.get("name") for each in overview["steps"]["columns"]]
    rows = overview["steps"]["rows"]
    shown_us = sum(row[columns.index("DataLoader")] for row in rows)
    batches = profile.batches
    waited_s = sum(d - a for a, d in zip(batches.asked_s, batches.delivered_s, strict=True))
    assert len(rows) == 50
    assert shown_us * 1e-6 == pytest.approx(waited_s, rel=0.001)
    if accelerator:
        assert sum(row[columns.index("Kernel")] for row in rows) == pytest.approx(50 * STEP_S * 1e6)
    assert "intersect" not in (tmp_path / "log").read_text(), "no spans of a track overlap"
