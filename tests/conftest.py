"""Provide fixtures and checks for every test."""

from __future__ import annotations

import gc
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import coverage
import hypothesis
import pytest

from tests.support.retry_timed import pytest_runtest_protocol, pytest_terminal_summary  # noqa: F401
from tests.support.tiers import mark_slow
from tests.support.wait import comes

# The same examples on every run and machine, however slow: a failure is a failure of the code.
hypothesis.settings.register_profile("house", derandomize=True, deadline=None, database=None)
hypothesis.settings.load_profile("house")

# A shell lets its background jobs ignore Ctrl-C, and so would every process that a test starts.
signal.signal(signal.SIGINT, signal.default_int_handler)

_LASTING = (
    b"multiprocessing.resource_tracker",
    b"multiprocessing.forkserver",
    b"tests/support/warm.py",
)
"""Helpers that are started once and stay until this process exits."""


@pytest.fixture(scope="session")
def repo() -> Path:
    """Return the root of the repository."""
    return Path(__file__).parent.parent


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    mark_slow(items)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish() -> None:
    """Save the coverage data: pytest-xdist kills a process that takes 10 s to end."""
    if watching := coverage.Coverage.current():
        watching.stop()
        watching.save()


@pytest.fixture(autouse=True)
def no_process_left() -> Iterator[None]:
    """Fail a test that leaves a child process behind, such as a DataLoader's worker."""
    before = _children()
    yield
    if _children() - before:
        gc.collect()  # an iterator in a reference cycle keeps its workers
    comes(lambda: not _children() - before)
    left = _children() - before
    assert not left, f"left running: {[_command_line(child) for child in left]}"


def _children() -> set[int]:
    """Return the running child processes of this process; none where /proc does not list them."""
    started: list[str] = []
    for thread in Path("/proc/self/task").glob("*"):
        with suppress(OSError):  # a thread may end, and a kernel may keep no such list
            started += (thread / "children").read_text().split()
    return {int(pid) for pid in started if _runs(int(pid))}


def _runs(pid: int) -> bool:
    """Return whether ``pid`` is a running process other than those that last until Python exits."""
    line = _command_line(pid)
    return bool(line) and not any(name in line for name in _LASTING)


def _command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
