"""Candidates are found by a process that takes little from training."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest
from torch.utils.data import DataLoader

import pipeprof
from pipeprof.loaders.tune.candidates import Bounds
from pipeprof.loaders.tune.proposal_process import _START, ProposalProcess
from pipeprof.loaders.tune.variant import setting_of
from tests.loaders.tune.tuned import Slow, samples
from tests.support.wait import PATIENCE_S, comes

LOW = 10


@pytest.mark.slow
def test_it_finds_workers_for_a_loader_without() -> None:
    loader = DataLoader(Slow(400), batch_size=8)
    profiled = pipeprof.wrap(loader)
    samples(profiled, 0.001)
    proposal = ProposalProcess(profiled.recording(), setting_of(loader), Bounds())
    end = time.monotonic() + PATIENCE_S
    while (found := proposal()) is None and time.monotonic() < end:
        time.sleep(0.01)
    assert found
    assert found[0].setting.num_workers >= 1


def test_it_has_a_low_priority_before_it_imports_our_modules() -> None:
    """In a session of its own, the priority would count for nothing: the scheduler shares cores
    between sessions first. In a group of its own, Ctrl-C does not reach it."""
    with subprocess.Popen([sys.executable, "-c", _START], stdin=subprocess.PIPE) as waiting:
        low = comes(lambda: os.getpriority(os.PRIO_PROCESS, waiting.pid) == LOW)
        session, group = os.getsid(waiting.pid), os.getpgid(waiting.pid)
        waiting.kill()  # its task never comes
    assert low
    assert session == os.getsid(0)
    assert group == waiting.pid
