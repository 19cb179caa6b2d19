"""Candidates are found by a process that takes nothing from training."""

from __future__ import annotations

import os
import time

import pytest
from torch.utils.data import DataLoader

import pipeprof
from pipeprof.loaders.tune.candidates import Bounds
from pipeprof.loaders.tune.proposal_process import ProposalProcess
from pipeprof.loaders.tune.variant import setting_of
from tests.loaders.tune.tuned import Slow, samples
from tests.support.wait import PATIENCE_S, comes

LOW = 10


@pytest.fixture
def proposal() -> ProposalProcess:
    loader = DataLoader(Slow(400), batch_size=8)
    profiled = pipeprof.wrap(loader)
    samples(profiled, 0.001)
    return ProposalProcess(profiled.recording(), setting_of(loader), Bounds())


def test_it_finds_workers_for_a_loader_without(proposal: ProposalProcess) -> None:
    end = time.monotonic() + PATIENCE_S
    while (found := proposal()) is None and time.monotonic() < end:
        time.sleep(0.01)
    assert found
    assert found[0].setting.num_workers >= 1


def test_it_has_a_low_priority_before_it_imports_anything(proposal: ProposalProcess) -> None:
    """In a session of its own, the priority would count for nothing: the scheduler shares cores
    between sessions first. In a group of its own, Ctrl-C does not reach it."""
    process = proposal._process
    os.kill(process.pid, 0)
    low = comes(
        lambda: process.poll() is not None or os.getpriority(os.PRIO_PROCESS, process.pid) == LOW
    )
    assert low
    assert process.poll() is None, "it imports modules yet"
    assert os.getsid(process.pid) == os.getsid(0)
    assert os.getpgid(process.pid) == process.pid
