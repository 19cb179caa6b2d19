"""Order the tests, and print what each found beside the truth, in a table after the last."""

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


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the tests that take the link: the first process gets the first half, so that they
    do not wait for one another in both."""
    items.sort(key=lambda item: item.get_closest_marker("link") is None)


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
