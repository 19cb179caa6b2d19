"""The arms that are compared: a plain loader, one profiled by us, and one by other profilers."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch.profiler import ProfilerActivity, profile
from torch.utils.data import DataLoader

import pipeprof

PEERS = Path(__file__).resolve().parent.parent / ".bench-peers"
"""Folder of packages that only the process which measures them can import."""
_TRACEML = "0.5.0"
_NEEDED = (f"traceml-ai=={_TRACEML}", "psutil", "pyyaml", "nvidia-ml-py")
"""Packages to install. Others are shared with pipeprof, so that every arm has the same torch."""

PEER_STEPS = 2_000
"""Steps per session. The queue of traceml-ai has room for 2,048, and a thread empties it every two
seconds. When it is full, each step prints a line, which is no part of the usual cost."""


class Arm:
    """A loader that nothing profiles."""

    alters_torch = False
    """Whether it affects every loader that is iterated after it."""

    def __init__(self, name: str = "plain") -> None:
        self.name = name

    def iterate(self, loader: DataLoader[Any]) -> Iterator[Any]:
        return iter(loader)

    def around(self) -> AbstractContextManager[Any]:
        """Return a context that is entered before the clock starts, and left after it stops."""
        return nullcontext()

    def take(self, batches: Iterator[Any], count: int) -> None:
        """Take ``count`` batches in a training loop with empty steps."""
        for _ in islice(batches, count):
            pass


class Ours(Arm):
    def iterate(self, loader: DataLoader[Any]) -> Iterator[Any]:
        # whole: the benchmark itself decides when batches are only clocked
        return iter(pipeprof.wrap(loader, whole=True))


class TorchProfiler(Arm):
    def around(self) -> AbstractContextManager[Any]:
        os.environ["KINETO_LOG_LEVEL"] = "99"  # else it prints each start and stop
        return profile(activities=[ProfilerActivity.CPU])


class TraceMLLoader(Arm):
    """The instrumentation of the DataLoader by traceml-ai, without that of steps."""

    alters_torch = True
    options: ClassVar[dict[str, Any]] = {"mode": "selective", "patch_dataloader": True}

    def __init__(self, name: str, port: int, logs: str) -> None:
        super().__init__(name)
        self._port, self._logs = port, logs
        self._library: Any = None

    def iterate(self, loader: DataLoader[Any]) -> Iterator[Any]:
        sys.path.append(str(PEERS))
        self._library = import_module("traceml_ai")
        self._library.init(
            **self.options,
            aggregator_port=self._port,
            connect_timeout_sec=30.0,
            logs_dir=self._logs,
            on_missing_aggregator="raise",
        )
        return iter(loader)


class TraceMLSteps(TraceMLLoader):
    """As in the quickstart of traceml-ai: ``init`` once, ``trace_step`` around each step."""

    options: ClassVar[dict[str, Any]] = {"mode": "auto"}

    def take(self, batches: Iterator[Any], count: int) -> None:
        library, model = self._library, torch.nn.Linear(1, 1)
        for _ in islice(batches, count):
            with library.trace_step(model):
                pass


@contextmanager
def traceml() -> Iterator[list[Arm]]:
    """Install traceml-ai if necessary, start the server to which it reports, and yield its arms.

    Raises OSError or `subprocess.CalledProcessError` when it cannot be installed or started.
    """
    if not (PEERS / f"traceml_ai-{_TRACEML}.dist-info").exists():
        pip = [sys.executable, "-m", "pip", "install", "-qq", "--disable-pip-version-check"]
        options = ["--retries=1", "--no-deps", f"--target={PEERS}"]
        subprocess.run([*pip, *options, *_NEEDED], check=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as logs:
        serve = [sys.executable, "-m", "traceml_ai.launcher.cli", "serve"]
        server = subprocess.Popen(
            [*serve, f"--aggregator-port={port}", f"--logs-dir={logs}"],
            env={**os.environ, "PYTHONPATH": str(PEERS)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            yield [
                TraceMLLoader("traceml-ai, loader", port, logs),
                TraceMLSteps("traceml-ai, steps", port, logs),
            ]
        finally:
            server.terminate()
            try:
                server.wait(30)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()
