"""Fixtures that tests of loaders share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pipeprof.loaders.instrument.device_monitor import DeviceMonitor
from pipeprof.measure.clock import FakeClock
from tests.terminal import Terminal


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Terminal]:
    """A terminal of 24 rows and 80 columns, in colour."""
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    made = Terminal()
    yield made
    made.close()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(100.0)


@pytest.fixture
def no_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pretend that no device is in use, whatever other tests did; with one all are recorded."""
    monkeypatch.setattr(DeviceMonitor, "has_work", staticmethod(lambda: False))
