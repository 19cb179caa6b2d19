"""A worker is killed or exceeds the loader's timeout: the error is torch's own, and nothing is left
behind."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import time
from typing import Any

import pytest
from torch.utils.data import DataLoader

import pipeprof
from tests.loaders.forms import Act
from tests.loaders.test_left_behind import standing
from tests.support.wait import comes


def lose_worker(iterator: Any) -> None:
    """Kill a worker; torch notices at any moment, and raises there."""
    os.kill(iterator._workers[0].pid, signal.SIGKILL)
    next(iterator)


@pytest.mark.parametrize("kept", [False, True], ids=["new workers", "persistent"])
def test_nothing_is_left_when_a_worker_is_killed(kept, monkeypatch, tmp_path):
    monkeypatch.setenv("TMPDIR", str(tmp_path))

    def use() -> None:
        held = Act(lambda index: time.sleep(60 * (index > 2)))
        loader = pipeprof.wrap(DataLoader(held, num_workers=1, persistent_workers=kept))
        iterator: Any = iter(loader)
        for _ in range(3):
            next(iterator)
        with pytest.raises(RuntimeError, match=r"DataLoader worker \(pid"):
            lose_worker(iterator)
        iterator._shutdown_workers()
        profile = loader.profile()
        seen = profile.measured_batches + profile.warmup_batches
        assert seen >= 2, "of all whose step has ended until then"

    use()  # what Python and torch open once and for all
    gc.collect()
    before = standing()
    use()
    comes(lambda: standing() <= before or (gc.collect() and False))
    # multiprocessing's own folder may stay behind a worker that was handing over a tensor
    assert not [name for name in standing() - before if not str(name).startswith("pymp-")]


def test_a_batch_that_takes_longer_than_the_timeout_is_torchs_own_error():
    def error(wrapped: bool) -> tuple[type, str]:
        over = multiprocessing.Event()
        loader = DataLoader(Act(lambda index: over.wait(60)), num_workers=1, timeout=0.2)
        iterator: Any = iter(pipeprof.wrap(loader) if wrapped else loader)
        with pytest.raises(RuntimeError, match=r"timed out after 0\.2 seconds") as caught:
            next(iterator)
        over.set()
        iterator._shutdown_workers()
        return type(caught.value), str(caught.value)

    assert error(wrapped=True) == error(wrapped=False)
