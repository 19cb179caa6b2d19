"""What is held to time has three goes, as another process may have had the cores in the first. What
fails in all of them has failed, unless others had the cores each time: then nothing is settled."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, sleep

import pytest
from _pytest.runner import runtestprotocol

from pipeprof.measure.host import idle_s

GOES = 3
MARKS = ("timed", "lab")
DISTURBING = 0.15
"""Of all cores: so much used by others, and what takes longer than it should says nothing."""

_TICKS_A_S = os.sysconf("SC_CLK_TCK")
LEAST_S = 0.5
"""To look at the machine: its clocks tick each hundredth of a second."""

_told = pytest.StashKey[list[str]]()


@dataclass(frozen=True)
class Clocks:
    """Of one moment, in seconds."""

    now: float
    idle: float | None
    """Of all cores."""
    ours: float
    """CPU time of this process, and of all that it started, such as a server."""

    @staticmethod
    def read() -> Clocks:
        return Clocks(perf_counter(), idle_s(), _cpu_s_of(os.getpid()))

    def others_since(self, before: Clocks) -> float:
        """The share of all cores that other processes, or other machines on this host, have had."""
        if self.idle is None or before.idle is None:
            return 0.0
        whole = (self.now - before.now) * (os.cpu_count() or 1)
        others = whole - (self.idle - before.idle) - (self.ours - before.ours)
        return min(1.0, max(0.0, others / whole))


def _cpu_s_of(root: int) -> float:
    """Of a process and its descendants, those included that have ended."""
    parents, ticks = {}, {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended meanwhile
            fields = path.read_text().rpartition(")")[2].split()
            parents[int(path.parent.name)] = int(fields[1])
            ticks[int(path.parent.name)] = sum(map(int, fields[11:15]))
    return sum(ticks[pid] for pid in ticks if _is_below(pid, root, parents)) / _TICKS_A_S


def _is_below(pid: int, root: int, parents: dict[int, int]) -> bool:
    while pid != root and pid in parents:
        pid = parents[pid]
    return pid == root


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    if not any(item.get_closest_marker(mark) for mark in MARKS):
        return None
    place = {"nodeid": item.nodeid, "location": item.location}
    item.ihook.pytest_runtest_logstart(**place)
    disturbed: list[float] = []
    for go in range(1, GOES + 1):
        before = Clocks.read()
        reports = runtestprotocol(item, log=False, nextitem=nextitem)
        failed = [report for report in reports if report.failed]
        if not failed:
            break
        sleep(max(0.0, LEAST_S - (perf_counter() - before.now)))
        disturbed.append(Clocks.read().others_since(before))
        said = f"{_said(failed[0])} (others had {disturbed[-1]:.0%} of the cores)"
        item.config.stash.setdefault(_told, []).append(f"{item.nodeid}, go {go}: {said}")
    else:
        if min(disturbed) > DISTURBING:
            _unsettle(item, reports)
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(**place)
    return True


def _said(report: pytest.TestReport) -> str:
    lines = str(report.longrepr).strip().splitlines()
    return next((line[1:].strip() for line in lines if line.startswith("E ")), lines[-1])[:200]


def _unsettle(item: pytest.Item, reports: list[pytest.TestReport]) -> None:
    """What failed itself is skipped, loudly; not what could not begin, or left something behind."""
    for report in reports:
        if report.failed and report.when == "call":
            why = f"Skipped: NOT SETTLED, others had the cores: {_said(report)}"
            report.outcome = "skipped"
            report.longrepr = (str(item.path), item.location[1] or 0, why)


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    for line in config.stash.get(_told, []):
        terminalreporter.write_line(f"DISTURBED {line}")
