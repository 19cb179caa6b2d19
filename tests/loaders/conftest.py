"""Fixtures that tests of loaders share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.terminal import Terminal


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Terminal]:
    """A terminal of 24 rows and 80 columns, in colour."""
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    made = Terminal()
    yield made
    made.close()
