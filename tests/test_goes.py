"""A test that is held to time: how often it is tried, and what is said of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.env import UNWATCHED
from tests.support.retry_timed import Clocks

SAYS = ("DISTURBED", "PASSED", "SKIPPED", "FAILED", "ERROR")
CONFTEST = """
from tests.support import retry_timed
from tests.support.retry_timed import pytest_runtest_protocol, pytest_terminal_summary
retry_timed.DISTURBING, retry_timed.LEAST_S = {disturbing}, 0.0
"""
TESTS = """
import pytest

goes = []

@pytest.mark.timed
def test_that_holds_in_its_second_go(tmp_path):
    goes.append(tmp_path)
    assert len(set(goes)) == 2, "too slow"

@pytest.mark.timed
def test_that_never_holds():
    assert False, "never"

@pytest.fixture
def left():
    yield
    assert False, "left running"

@pytest.mark.timed
def test_that_leaves_something(left):
    pass

def test_that_takes_no_time():
    assert False, "wrong"
"""


@pytest.mark.parametrize(("disturbing", "ends"), [(-1.0, "SKIPPED"), (2.0, "FAILED")])
def test_each_has_three_goes_and_is_left_open_where_others_had_the_cores(
    disturbing: float, ends: str, tmp_path: Path, repo: Path
) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST.format(disturbing=disturbing))
    (tmp_path / "test_it.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = timed\n")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-rA", "-p", "no:cacheprovider", str(tmp_path)],
        env={**UNWATCHED, "PYTHONPATH": str(repo), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    lines = [line for line in done.stdout.splitlines() if line.startswith(SAYS)]
    told = [line for line in lines if line.startswith("DISTURBED")]
    assert [line.partition("::")[2].partition(": ")[0] for line in told] == [
        "test_that_holds_in_its_second_go, go 1",
        *(f"test_that_never_holds, go {go}" for go in (1, 2, 3)),
        *(f"test_that_leaves_something, go {go}" for go in (1, 2, 3)),
    ]
    assert "AssertionError: too slow (others had " in told[0]
    ended = {line.split(" ")[0]: line for line in lines if "never" in line and line not in told}
    assert list(ended) == [ends]
    assert "PASSED test_it.py::test_that_holds_in_its_second_go" in lines
    assert "FAILED test_it.py::test_that_takes_no_time - AssertionError: wrong" in lines
    assert any(line.startswith("ERROR test_it.py::test_that_leaves_something") for line in lines)


def test_what_a_test_starts_is_no_other() -> None:
    """Such as a server, which goes on."""
    before = Clocks.read()
    burn = "import time\nwhile time.process_time() < 1: pass\nprint(flush=True)\ninput()"
    with subprocess.Popen(
        [sys.executable, "-c", burn], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=UNWATCHED
    ) as server:
        assert server.stdout
        server.stdout.readline()
        assert Clocks.read().ours - before.ours >= 0.9
        server.communicate(b"\n")
    assert Clocks.read().ours - before.ours >= 0.9


def test_what_others_had_of_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 4)
    before = Clocks(now=100.0, idle=1000.0, ours=50.0)
    assert Clocks(110.0, 1025.0, 55.0).others_since(before) == 0.25
    assert Clocks(110.0, 1035.0, 55.0).others_since(before) == 0.0
    assert Clocks(110.0, None, 55.0).others_since(before) == 0.0, "it is not told"
