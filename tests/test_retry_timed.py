"""A timed test is repeated a limited number of times, and its failures are reported."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.support.env import UNWATCHED

OUTCOMES = ("RETRIED", "PASSED", "SKIPPED", "FAILED", "ERROR")
CONFTEST = """
from tests.support.retry_timed import pytest_runtest_protocol, pytest_terminal_summary
"""
TESTS = """
import pytest

tries = []

@pytest.mark.timed
def test_that_holds_in_its_second_try(tmp_path):
    tries.append(tmp_path)
    assert len(set(tries)) == 2, "too slow"

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


def test_a_timed_test_is_tried_three_times_and_then_fails(tmp_path: Path, repo: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_it.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = timed\n")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-rA", "-p", "no:cacheprovider", str(tmp_path)],
        env={**UNWATCHED, "PYTHONPATH": str(repo), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    lines = [line for line in done.stdout.splitlines() if line.startswith(OUTCOMES)]
    retried = [line for line in lines if line.startswith("RETRIED")]
    assert [line.partition("::")[2].partition(": ")[0] for line in retried] == [
        "test_that_holds_in_its_second_try, try 1",
        *(f"test_that_never_holds, try {number}" for number in (1, 2, 3)),
        *(f"test_that_leaves_something, try {number}" for number in (1, 2, 3)),
    ]
    assert "AssertionError: too slow (load " in retried[0]
    assert "PASSED test_it.py::test_that_holds_in_its_second_try" in lines
    assert "FAILED test_it.py::test_that_never_holds - AssertionError: never" in lines
    assert "FAILED test_it.py::test_that_takes_no_time - AssertionError: wrong" in lines
    assert any(line.startswith("ERROR test_it.py::test_that_leaves_something") for line in lines)
