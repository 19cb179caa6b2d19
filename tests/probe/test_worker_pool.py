"""Several processes that read real files: what each did adds up, and none stays."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from pipeprof.errors import StorageError
from pipeprof.probe.budget import Budget
from pipeprof.probe.load import apply_load
from pipeprof.probe.result import LoadSpec
from pipeprof.probe.target import open_target
from pipeprof.probe.worker_pool import ReaderPool
from tests.probe.test_load import FREE, press_ctrl_c


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "file"
    path.write_bytes(os.urandom(1 << 20))
    return path


def test_each_takes_its_streams_and_its_part_of_what_may_be_read(file):
    budget = Budget(FREE, 100)
    with ReaderPool(open_target(str(file)), 2) as readers:
        point = apply_load(readers, LoadSpec("random", 4096, 4), 20.0, budget, 0)
        spent = (budget.requests, budget.bytes, budget.spent)
        alone = apply_load(readers, LoadSpec("random", 4096, 1), 20.0, Budget(FREE, 100), 0)
    assert spent == (100, 100 * 4096, True)
    assert point is not None
    assert (point.processes, point.demand.concurrency) == (2, 4)
    assert point.bytes == 4096 * point.requests
    assert alone is not None
    assert alone.processes == 1, "one stream is not shared"


def test_an_error_in_one_is_told(file):
    target = open_target(str(file))
    with ReaderPool(target, 2) as readers:
        os.truncate(file, 0)
        with pytest.raises(StorageError, match="has become shorter"):
            apply_load(readers, LoadSpec("random", 4096, 2), 5.0, Budget(FREE, FREE), 0)


def test_one_that_is_killed_is_told(file):
    with ReaderPool(open_target(str(file)), 2) as readers:
        member = readers._members[1][1]
        assert member.pid is not None
        os.kill(member.pid, signal.SIGKILL)
        member.join()
        with pytest.raises(StorageError, match="ended"):
            apply_load(readers, LoadSpec("random", 4096, 2), 0.3, Budget(FREE, FREE), 0)


def test_after_an_error_nobody_is_waited_for(file):
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        interrupted(file)
    assert time.monotonic() - start < 40, "they were to read for a minute"


def interrupted(file: Path) -> None:
    with ReaderPool(open_target(str(file)), 2) as readers:
        press_ctrl_c()
        apply_load(readers, LoadSpec("random", 4096, 2), 60.0, Budget(FREE, FREE), 0)
