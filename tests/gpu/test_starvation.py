"""Starvation by events against what the kernels themselves say, without ever waiting for them."""

from __future__ import annotations

import time
from dataclasses import dataclass
from statistics import median
from time import perf_counter

import pytest
import torch

from pipeprof.measure.device import DeviceClock, DeviceStep, cuda_events
from tests.gpu.kernels import no_waiting, timing_event

pytestmark = pytest.mark.gpu


def device_clock(most_pending: int = 256) -> DeviceClock:
    events = cuda_events()
    assert events is not None
    return DeviceClock(events, most_pending)


@dataclass(frozen=True)
class Pipeline:
    load_s: float
    """A sleep of the host."""
    step_s: float
    """A kernel."""
    synchronous: bool
    """The host waits for each step, as ``loss.item()`` does."""
    starved: float
    """The device's, worked out by hand."""


PIPELINES = {
    "starved": Pipeline(0.010, 0.005, False, 0.50),
    "starved, synchronous": Pipeline(0.010, 0.005, True, 0.67),
    "fed, host ahead": Pipeline(0.002, 0.010, False, 0.00),
}


@dataclass(frozen=True)
class Run:
    truth: float
    """Share of the run in which no kernel ran: by events around each kernel."""
    measured: float
    by_host: float
    """The share of its time that the host waits for batches."""


def run(pipeline: Pipeline, spin, batches: int = 60) -> Run:
    clock, kernels, waited_s = device_clock(), [], 0.0
    steps: list[DeviceStep] = []
    torch.cuda.synchronize()
    began = perf_counter()
    for index in range(batches):
        asked = perf_counter()
        clock.ask(index)
        time.sleep(pipeline.load_s)
        clock.deliver(index)
        waited_s += perf_counter() - asked
        start, end = timing_event(), timing_event()
        start.record()
        spin(pipeline.step_s)
        end.record()
        kernels.append((start, end))
        if pipeline.synchronous:
            end.synchronize()
        steps += clock.harvest()
    clock.ask(batches)
    host_s = perf_counter() - began
    torch.cuda.synchronize()
    took_s = perf_counter() - began
    steps += clock.harvest()
    assert clock.reason is None
    assert [step.batch for step in steps] == list(range(batches))
    busy_s = sum(start.elapsed_time(end) for start, end in kernels) / 1000
    starved_s = sum(step.starved_s for step in steps)
    measured = starved_s / (starved_s + sum(step.busy_s for step in steps))
    return Run(1 - busy_s / took_s, measured, waited_s / host_s)


@pytest.mark.parametrize("name", PIPELINES)
def test_the_starved_share_is_that_of_the_device(name, spin, figure):
    seen = run(PIPELINES[name], spin)
    figure(
        f"starved share, {name}",
        f"truth {seen.truth:.1%}, measured {seen.measured:.1%}, by the host {seen.by_host:.1%}",
    )
    assert seen.measured == pytest.approx(seen.truth, abs=0.03)
    assert seen.truth == pytest.approx(PIPELINES[name].starved, abs=0.12), (
        "as sleeps and the GPU's clock allow"
    )


def test_the_host_runs_ahead_and_never_waits(spin):
    clock = device_clock()
    with no_waiting():
        began = perf_counter()
        for index in range(20):
            clock.ask(index)
            clock.deliver(index)
            spin(0.010)
            clock.harvest()
        clock.ask(20)
        took_s = perf_counter() - began
        unfinished = 20 - len(clock.harvest())
    torch.cuda.synchronize()
    assert clock.reason is None
    assert took_s < 0.1, "200 ms of kernels were queued"
    assert unfinished > 5


def test_what_two_events_cost(spin, figure):
    clock, batches = device_clock(), 2000
    for index in range(100):
        clock.ask(index)
        clock.deliver(index)
    torch.cuda.synchronize()
    clock.harvest()
    began = perf_counter()
    for index in range(100, batches):
        clock.ask(index)
        clock.deliver(index)
        clock.harvest()
    cost_s = (perf_counter() - began) / (batches - 100)
    figure("cost of the events of a batch", f"{cost_s * 1e6:.1f} µs of the host")
    assert cost_s < 100e-6


def test_two_events_back_to_back_are_a_few_microseconds_apart(spin, figure):
    clock = device_clock()
    spin(0.050)
    for index in range(50):
        clock.ask(index)
        clock.deliver(index)
        spin(0.0001)
    clock.ask(50)
    torch.cuda.synchronize()
    floor_s = median(step.starved_s for step in clock.harvest())
    figure("floor of the starved time", f"{floor_s * 1e6:.1f} µs a batch")
    assert floor_s < 50e-6


def test_a_graph_is_captured_as_without_us(spin):
    clock = device_clock()
    total = torch.zeros(1, device="cuda")
    total += 1  # its kernel must be loaded before a graph is captured
    clock.ask(0)
    clock.deliver(0)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        clock.ask(1)
        total += 1
        clock.deliver(1)
        assert clock.harvest() == []
    for index in (2, 3):
        clock.ask(index)
        clock.deliver(index)
        graph.replay()
    clock.ask(4)
    torch.cuda.synchronize()
    assert total.item() == 3
    assert [step.batch for step in clock.harvest()] == [2, 3]
    assert clock.reason is None


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="one GPU")
def test_each_device_has_events_of_its_own():
    clock = device_clock()
    for index in range(6):
        with torch.cuda.device(index // 3):
            clock.ask(index)
            clock.deliver(index)
    with torch.cuda.device(1):
        clock.ask(6)
    for device in range(2):
        torch.cuda.synchronize(device)
    assert [step.batch for step in clock.harvest()] == [0, 1, 3, 4, 5]
    assert clock.reason is None
