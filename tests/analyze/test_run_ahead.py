"""What is promised to a loop that queues work ahead of its device, and what comes of it.

The device is emulated: its kernels take real time. So its truth is known.
"""

from __future__ import annotations

import time

import pytest
import torch
from torch.utils.data import DataLoader, Dataset

import pipeprof
from pipeprof.analyze.compare.runs import two_runs
from pipeprof.loaders.instrument import device_monitor
from pipeprof.measure.clock import SYSTEM_CLOCK
from pipeprof.measure.device import CudaEvents
from pipeprof.model import Profile
from tests.measure.fake_cuda import FakeCuda

pytestmark = pytest.mark.timed

BUSY_S, AHEAD_S = 0.030, 0.060
"""What the device takes for a batch, and how far the loop may run ahead of it."""


class Sleeps(Dataset[torch.Tensor]):
    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def __len__(self) -> int:
        return 90

    def __getitem__(self, index: int) -> torch.Tensor:
        time.sleep(self._seconds)
        return torch.tensor([index])


def trained(monkeypatch: pytest.MonkeyPatch, workers: int, load_s: float) -> Profile:
    cuda = FakeCuda(SYSTEM_CLOCK)
    monkeypatch.setattr(device_monitor, "cuda_events", lambda: CudaEvents(cuda))
    loader = pipeprof.wrap(DataLoader(Sleeps(load_s), None, num_workers=workers))
    for _ in loader:
        cuda.stream.launch(BUSY_S)
        time.sleep(max(0.0, cuda.stream.reached_s() - time.perf_counter() - AHEAD_S))
    time.sleep(2 * AHEAD_S)
    return loader.profile()


def test_more_workers_bring_what_the_device_can_take(monkeypatch: pytest.MonkeyPatch) -> None:
    profile = trained(monkeypatch, 1, load_s=0.040)
    assert profile.diagnosis.starved_fraction == pytest.approx(0.25, abs=0.07), "10 of 40 ms"
    assert profile.stages["wait"].mean_s > 0.036, "the host waits nearly all the time"
    assert profile.ceilings["accelerator"].samples_per_s == pytest.approx(1 / BUSY_S, rel=0.07)
    advice = profile.recommendations[0]
    assert advice.setting == "num_workers"
    assert advice.predicted_samples_per_s == pytest.approx(1 / BUSY_S, rel=0.07)
    came = trained(monkeypatch, int(advice.proposed), load_s=0.040)
    assert came.diagnosis.verdict == "fed"
    assert came.throughput.samples_per_s == pytest.approx(advice.predicted_samples_per_s, rel=0.07)


def test_the_worth_of_loading_ends_where_the_device_is_busy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Loading in no time at all would not make the device faster."""
    profile = trained(monkeypatch, 1, load_s=0.040)
    assert profile.worth["fetch"].free.share == pytest.approx(40 / 30 - 1, abs=0.08)


def test_without_workers_loading_already_overlaps_with_the_device(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    profile = trained(monkeypatch, 0, load_s=0.040)
    assert profile.diagnosis.starved_fraction == pytest.approx(0.25, abs=0.07)
    assert profile.throughput.samples_per_s == pytest.approx(25, rel=0.07)
    advice = profile.recommendations[0]
    assert advice.predicted_samples_per_s == pytest.approx(1 / BUSY_S, rel=0.1)


def test_compare_tells_faster_loading_from_a_faster_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """The step of the host becomes longer as it waits for room in the queue of its device."""
    starved, fed = (trained(monkeypatch, workers, load_s=0.040) for workers in (1, 2))
    assert fed.stages["step"].mean_s > 3 * starved.stages["step"].mean_s
    found = two_runs(starved, fed, ("starved", "fed"))
    assert found.speed.shown == "faster"
    assert found.stages["step"].shown not in ("more", "less")
    assert not any("step" in each for each in found.unlike)


class Instant(Sleeps):
    """1,200 batches that cost nearly nothing."""

    def __len__(self) -> int:
        return 1200


def test_a_fast_loop_is_judged_by_the_batches_around_which_its_device_is_observed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The loop waits for batches most of the time, and so far ahead that the device is busy."""
    cuda = FakeCuda(SYSTEM_CLOCK)
    monkeypatch.setattr(device_monitor, "cuda_events", lambda: CudaEvents(cuda))
    loader = pipeprof.wrap(DataLoader(Instant(0.0), None, num_workers=1))
    for number, _ in enumerate(loader):
        cuda.stream.launch(0.006)
        if number % 8 == 7:  # it reads a loss
            time.sleep(max(0.0, cuda.stream.reached_s() - time.perf_counter() - 0.001))
    time.sleep(0.05)
    profile = loader.profile()
    assert profile.device is not None
    assert profile.device.batches < 600, "the others were only timed"
    assert profile.diagnosis.verdict == "fed"
    assert profile.stages["wait"].total_s > 3 * profile.stall_s
    assert sum(profile.blame.values()) == pytest.approx(profile.stall_s)
    assert profile.ceilings["accelerator"].samples_per_s == pytest.approx(1 / 0.006, rel=0.1)
