"""What is observed of the machine from the first pass over a loader to its profile."""

import threading
from functools import partial
from math import nan

import pytest
import torch
from torch.utils.data import DataLoader

import pipeprof
from pipeprof.loaders.instrument import host_monitor
from pipeprof.measure import host
from pipeprof.measure.clock import FakeClock
from pipeprof.model import LoaderConfig


@pytest.mark.parametrize(("at_end", "share"), [("900 0 400 5100 0 0 0 150", 0.6), ("", None)])
def test_cores_that_were_stolen_meanwhile(monkeypatch, tmp_path, at_end, share):
    machine = tmp_path / "stat"
    machine.write_text("cpu  900 0 400 5000 0 0 0 0\n")
    monkeypatch.setattr(host, "core_time", partial(host.core_time, str(tmp_path)))
    monkeypatch.setattr(host_monitor, "_POLL_EVERY_S", 0.0)  # else it is too short a run
    loader = pipeprof.wrap(DataLoader(torch.zeros(40, 2), 4))
    assert len(list(loader)) == 10
    machine.write_text(f"cpu  {at_end}\n")
    profile = loader.profile()
    assert profile.stolen_share == share


def test_how_long_the_thread_that_iterates_had_no_core(monkeypatch):
    clock, waited_s = FakeClock(), iter([2.0, 2.5])
    monkeypatch.setattr(host_monitor, "thread_waited_s", lambda thread: next(waited_s))
    monitor = host_monitor.HostMonitor(clock)
    assert monitor.core_wait_share() is None, "nothing was iterated yet"
    monitor.begin_pass(LoaderConfig(num_workers=0))
    monitor.workers_started()
    clock.sleep(2.0)
    assert monitor.core_wait_share() == 0.25


def test_where_the_kernel_does_not_count_that_it_is_unknown(monkeypatch):
    monkeypatch.setattr(host_monitor, "thread_waited_s", lambda thread: nan)
    loader = pipeprof.wrap(DataLoader(torch.zeros(40, 2), 4))
    assert len(list(loader)) == 10
    assert loader.profile().core_wait_share is None


def test_threads_that_existed_before_workers_were_forked(monkeypatch):
    """They are counted while workers start, but the threads that torch starts for them are not."""
    native = 5
    monkeypatch.setattr(host, "live_threads", lambda: native + threading.active_count())
    ended = threading.Event()
    mine = threading.Thread(target=ended.wait, name="mine", daemon=True)
    mine.start()
    before = native + threading.active_count()
    loader = pipeprof.wrap(
        DataLoader(torch.zeros(40, 2), 4, num_workers=2, multiprocessing_context="fork")
    )
    assert len(list(loader)) == 10
    ended.set()
    mine.join()
    main = loader.recording().main
    assert main.threads_at_fork == before
    assert "mine" in main.python_threads_at_fork
