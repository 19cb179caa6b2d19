"""What each test found stands beside the truth in a table, after the last of them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

Told = Callable[[str, str, str], None]
"""What was measured, its truth, and what we found."""

_rows = pytest.StashKey[list[tuple[str, str, str]]]()


@pytest.fixture
def told(request: pytest.FixtureRequest) -> Told:
    def tell(*row: str) -> None:
        request.config.stash.setdefault(_rows, [("", "truth", "found")]).append(row)

    return tell


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    rows = config.stash.get(_rows, [])
    widths = [max(len(row[place]) for row in rows) for place in range(3)] if rows else []
    for what, truth, found in rows:
        terminalreporter.write_line(
            f"{what:<{widths[0]}}  {truth:>{widths[1]}}  {found:>{widths[2]}}"
        )
