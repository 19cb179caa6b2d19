"""The verdict follows what a device of known truth did, and not what the host waited for."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
import torch

import pipeprof
from pipeprof.loaders.instrument import device_monitor
from pipeprof.loaders.live.live_pass import LiveLoader
from pipeprof.measure.clock import FakeClock
from pipeprof.measure.device import CudaEvents
from pipeprof.model import Profile
from pipeprof.report.live import LiveView
from tests.loaders.forms import profiled
from tests.measure.fake_cuda import FakeCuda

BATCHES = 60


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> FakeCuda:
    cuda = FakeCuda()
    monkeypatch.setattr(device_monitor, "cuda_events", lambda: CudaEvents(cuda))
    return cuda


class Slow:
    """Takes ``pause_s`` for each batch of four samples."""

    def __init__(self, clock: FakeClock, pause_s: float) -> None:
        self._clock, self._pause_s = clock, pause_s

    def __iter__(self) -> Iterator[torch.Tensor]:
        for _ in range(BATCHES):
            self._clock.sleep(self._pause_s)
            yield torch.zeros(4)


def trained(cuda: FakeCuda, load_s: float, step_s: float) -> Profile:
    """Run a loop that queues kernels and runs ahead of them; then the device finishes."""
    loader = profiled(Slow(cuda.clock, load_s), cuda.clock)
    for _ in loader:
        cuda.stream.launch(step_s)
    cuda.clock.sleep(cuda.stream.reached_s() - cuda.clock.now())
    return loader.profile()


def test_a_host_that_only_waits_feeds_a_device_that_is_busy(cuda):
    profile = trained(cuda, load_s=0.003, step_s=0.006)
    assert profile.stages["wait"].p50_s == pytest.approx(0.003)
    assert profile.diagnosis.verdict == "fed"
    assert profile.diagnosis.starved_fraction < 0.02, "by the host it is nearly 1"


def test_what_is_shown_and_exported_says_the_same(cuda):
    loader = profiled(Slow(cuda.clock, 0.003), cuda.clock)
    live = loader._profiler.live = LiveLoader("loader", [])
    for _ in loader:
        cuda.stream.launch(0.006)
    cuda.clock.sleep(cuda.stream.reached_s() - cuda.clock.now())
    assert loader.profile().diagnosis.starved_fraction < 0.02
    assert live.figures.complete(LiveView("loader", 1, BATCHES, None)).starved < 0.02
    figures = live.figures.metrics()
    assert figures["starved_fraction"] < 0.02
    assert figures["wait_seconds_total"] < 0.02 * figures["cycle_seconds_total"]


def test_known_times_are_passed_on_together(cuda, monkeypatch):
    collected = []
    collect = device_monitor.DeviceMonitor.collect
    monkeypatch.setattr(
        device_monitor.DeviceMonitor, "collect", lambda self: collected.append(collect(self))
    )
    trained(cuda, load_s=0.0001, step_s=0.0001)
    assert len(collected) < 6, f"{BATCHES} batches"


def test_the_accelerator_is_named(cuda, monkeypatch):
    assert trained(cuda, load_s=0.001, step_s=0.001).environment.accelerator == "not observed"
    monkeypatch.setattr(device_monitor, "cuda_name", lambda: "NVIDIA H200")
    assert trained(cuda, load_s=0.001, step_s=0.001).environment.accelerator == "NVIDIA H200"


def test_a_device_that_stands_still_is_starved_by_what_it_stood_still(cuda):
    profile = trained(cuda, load_s=0.008, step_s=0.004)
    idle_s = cuda.stream.idle_s * profile.measured_batches / BATCHES
    assert profile.diagnosis.verdict == "starved"
    assert profile.device.batches == profile.measured_batches
    assert profile.device.busy_s == pytest.approx(0.004 * profile.measured_batches)
    assert profile.device.wait_s == pytest.approx(idle_s, rel=0.05)
    assert profile.device.wait_s == pytest.approx(0.004 * profile.measured_batches)
    assert profile.stall_s == pytest.approx(profile.device.wait_s)


def test_nothing_ever_waits_for_the_device(cuda):
    cuda.stream.launch(1000.0)
    started = time.perf_counter()
    loader = pipeprof.wrap([torch.zeros(4)] * 20)
    for _ in loader:
        cuda.stream.launch(1.0)
    profile = loader.profile()
    assert time.perf_counter() - started < 500, "1,020 s of kernels were queued"
    assert profile.device is None, "it has not got to any of them yet"
    assert profile.stages["wait"].count == profile.measured_batches


def test_a_driver_that_fails_stops_the_looking_and_not_the_training(cuda):
    loader, seen = pipeprof.wrap([torch.zeros(4)] * 20), 0
    for seen, _ in enumerate(loader, 1):
        if seen == 5:
            cuda.failure = RuntimeError("CUDA error: bad address")
    assert seen == 20
    (note,) = loader.profile().notes
    assert note == "the accelerator was no longer measured: RuntimeError: CUDA error: bad address"
