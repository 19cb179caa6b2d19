"""Print what each test found beside the truth, in a table after the last of them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

RecordTruth = Callable[[str, str, str], None]
"""Takes what was measured, its truth, and what pipeprof found."""

_ROW = "known truth"


@pytest.fixture
def record_truth(record_property: Callable[[str, object], None]) -> RecordTruth:
    """Return a function that adds a row to the table."""
    return lambda measured, truth, found: record_property(_ROW, (measured, truth, found))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = [each for those in terminalreporter.stats.values() for each in those]
    rows = [
        row
        for report in reports
        if isinstance(report, pytest.TestReport) and report.when == "call"
        for name, row in report.user_properties
        if name == _ROW
    ]
    if not rows:
        return
    table = [("", "truth", "found"), *rows]
    widths = [max(len(row[place]) for row in table) for place in range(3)]
    for what, truth, found in table:
        terminalreporter.write_line(
            f"{what:<{widths[0]}}  {truth:>{widths[1]}}  {found:>{widths[2]}}"
        )
