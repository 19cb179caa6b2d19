"""Every block of commands and of Python in the documents does what it says, for a reader who has a
script, data, saved runs and a bucket. Sweeps are made short, and what is a gigabyte is less."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.reader import blocks, settle, surroundings
from tests.s3.server import serving
from tests.support.warm import WarmPython

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]
COMMANDS = [
    pytest.param(block, id=f"{path.stem}-{number}")
    for path in DOCUMENTS
    for number, block in enumerate(blocks(path.read_text(), "sh"))
    if not block.startswith("make ")  # tests/test_make.py, and continuous integration
]
CODE = {
    path.stem: found
    for path in DOCUMENTS
    if (found := blocks(path.read_text(), "python")) and path.stem != "frameworks"
}
"""What needs a framework is tested by `make integrations`."""
PROGRAM = """
import os, sys, traceback
from unittest import mock
import mlflow
import torch, wandb
from torch.utils.data import DataLoader, Dataset
import pipeprof
from train import make_loader, train_step

decode, epoch, files = bytes, 0, []
loader, writer = pipeprof.wrap(make_loader()), mock.Mock()
for batch in loader:
    train_step(batch)
profile, sweep = pipeprof.load("run.json"), pipeprof.load("sweep.json")
mlflow.set_tracking_uri("file:mlruns")
def get_batch():
    return batch
known = dict(globals())
for name, blocks in CODE.items():
    sys.stdout.flush()
    if child := os.fork():
        if os.waitpid(child, 0)[1]:
            print("FAILED:", name)
        continue
    try:
        for block in blocks:
            exec(block, dict(known))
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)
"""
"""Runs each document in a process of its own, which does not import everything again."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("reader")
    with WarmPython(sys.executable, ["torch"]) as warm:
        settle(folder, warm)
        yield folder


@pytest.fixture(scope="module")
def surrounded(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    root = tmp_path_factory.mktemp("buckets")
    for prefix in ("data", "train"):
        shutil.copytree(folder / "data" / "csv", root / "root" / "bucket" / prefix)
    with serving(root / "root", root / "log") as server:
        yield surroundings(folder, server.endpoint)


@pytest.mark.parametrize("block", COMMANDS)
def test_commands_do_what_they_say(block: str, folder: Path, surrounded: dict[str, str]) -> None:
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", block],
        cwd=folder, env=surrounded, capture_output=True, text=True, timeout=240,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_python_does_what_it_says(folder: Path, surrounded: dict[str, str]) -> None:
    """Each block by itself: names in it are those of its own story."""
    quiet = {"MLFLOW_ALLOW_FILE_STORE": "true", "MLFLOW_DISABLE_TELEMETRY": "true"}
    done = subprocess.run(
        [sys.executable, "-c", f"CODE = {CODE!r}\n{PROGRAM}"],
        cwd=folder, env=surrounded | quiet, capture_output=True, text=True, timeout=240,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "FAILED" not in done.stdout, done.stdout + done.stderr


def test_there_are_commands_and_code_in_the_guides() -> None:
    guides = {path.stem for path in (ROOT / "docs" / "guides").glob("*.md")}
    assert {case.id.rpartition("-")[0] for case in COMMANDS} >= {"README", "start", *guides}
    assert {*CODE} >= {"README", "start", "wrap", "sweep", "notebooks"}
