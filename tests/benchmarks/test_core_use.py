"""What other processes had of the cores during a benchmark."""

from __future__ import annotations

import subprocess
import sys

import pytest

from benchmarks.core_use import CoreClocks
from tests.support.env import UNWATCHED


def test_what_a_process_starts_is_its_own() -> None:
    """Such as a server that has not ended."""
    before = CoreClocks.read()
    burn = "import time\nwhile time.process_time() < 1: pass\nprint(flush=True)\ninput()"
    with subprocess.Popen(
        [sys.executable, "-c", burn], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=UNWATCHED
    ) as server:
        assert server.stdout
        server.stdout.readline()
        assert CoreClocks.read().ours - before.ours >= 0.9
        server.communicate(b"\n")
    assert CoreClocks.read().ours - before.ours >= 0.9


def test_what_others_had_of_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 4)
    before = CoreClocks(now=100.0, idle=1000.0, ours=50.0)
    assert CoreClocks(110.0, 1025.0, 55.0).others_since(before) == 0.25
    assert CoreClocks(110.0, 1035.0, 55.0).others_since(before) == 0.0
    assert CoreClocks(110.0, None, 55.0).others_since(before) == 0.0, "unknown"
