"""A timed test is tried up to three times, as another process may have had the cores. A test that
fails three times has failed. In parallel it has one try: the Makefile runs it again by itself."""

from __future__ import annotations

import os

import pytest
from _pytest.runner import runtestprotocol

TRIES = 3
MARKS = ("timed", "lab")

_failed_tries = pytest.StashKey[list[str]]()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    if not any(item.get_closest_marker(mark) for mark in MARKS):
        return None
    place = {"nodeid": item.nodeid, "location": item.location}
    item.ihook.pytest_runtest_logstart(**place)
    tries = 1 if hasattr(item.config, "workerinput") else TRIES
    for number in range(1, tries + 1):
        reports = runtestprotocol(item, log=False, nextitem=nextitem)
        failed = [report for report in reports if report.failed]
        if not failed:
            break
        line = f"{item.nodeid}, try {number}: {_reason(failed[0])} ({_load()})"
        item.config.stash.setdefault(_failed_tries, []).append(line)
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(**place)
    return True


def _reason(report: pytest.TestReport) -> str:
    lines = str(report.longrepr).strip().splitlines()
    return next((line[1:].strip() for line in lines if line.startswith("E ")), lines[-1])[:200]


def _load() -> str:
    """How many threads wanted a core in the last minute: many say little for a time limit."""
    return f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    for line in config.stash.get(_failed_tries, []):
        terminalreporter.write_line(f"RETRIED {line}")
