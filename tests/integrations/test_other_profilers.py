"""Two profilers at once: losses are those without us, both profilers have all they ask for."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.integrations.environments import folder_of, has_package, train, train_under_run
from tests.integrations.test_frameworks import WHOLE, check
from tests.support.env import UNWATCHED
from tests.support.wait import comes

pytestmark = pytest.mark.integrations

HERE = Path(__file__).parent
TRACEML, LITDATA, LIGHTNING = (
    str(HERE / f"beside_{name}.py") for name in ("traceml", "litdata", "lightning")
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """The server to which TraceML reports: its port and folder."""
    has_package("main", "traceml_ai")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    folder = str(tmp_path_factory.mktemp("traceml"))
    serve = [str(folder_of("main") / "python"), "-m", "traceml_ai.launcher.cli", "serve"]
    options = [f"--aggregator-port={port}", f"--logs-dir={folder}"]
    process = subprocess.Popen(
        [*serve, *options], env=UNWATCHED, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        assert comes(lambda: answers(int(port)))
        yield port, folder
    finally:
        process.kill()
        process.wait()


def answers(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


@pytest.mark.parametrize("order", ["before", "after"])
def test_traceml_started_before_and_after_a_loader_is_wrapped(order, server) -> None:
    bare, both = (train("main", TRACEML, each, *server) for each in ("plain", order))
    check(both, bare, WHOLE)
    assert both.stdout.splitlines()[0] == bare.stdout.splitlines()[0] == "TraceML timed 82 calls"


def test_traceml_in_a_script_that_is_not_edited(server, tmp_path: Path) -> None:
    both = train_under_run("main", TRACEML, tmp_path, *server)
    (name,) = both.profiles
    check(both, train("main", TRACEML, "plain", *server), WHOLE, name)


@pytest.mark.parametrize(
    ("profiler", "files"),
    [
        ("profile_batches", {"result.json"}),
        ("profile_cprofile", {"cprofile_main.prof", "cprofile_worker0.prof"}),
    ],
)
def test_the_profilers_of_litdata(profiler: str, files: set[str], tmp_path: Path) -> None:
    has_package("streaming", "viztracer")
    answers = []
    for mode in ("plain", "wrap"):
        (tmp_path / mode).mkdir()
        answers.append(train("streaming", LITDATA, mode, profiler, str(tmp_path / mode)))
        written = {each.name for each in (tmp_path / mode).iterdir() if each.stat().st_size}
        assert files <= written
    check(answers[1], answers[0], WHOLE)


@pytest.mark.parametrize("mode", ["wrap", "callback"])
def test_the_profiler_of_lightning(mode: str) -> None:
    bare, both = (train("main", LIGHTNING, each) for each in ("plain", mode))
    check(both, bare, WHOLE)
    assert calls(both.stdout + both.stderr) == calls(bare.stdout + bare.stderr)


def calls(report: str) -> str:
    """How often a batch was asked for, by the report of Lightning's profiler."""
    line = next(each for each in report.splitlines() if "train_dataloader_next" in each)
    return line.split("|")[3].strip()
