"""Starvation by events agrees with a device whose idle time is known to the last bit."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeprof.measure.device import CudaEvents, DeviceClock, DeviceStep, cuda_events
from tests.measure.fake_cuda import FakeCuda, FakeStream

MS = 1e-3


class Loop:
    """A training loop on a fake device."""

    def __init__(self, most_pending: int = 256) -> None:
        self.cuda = FakeCuda()
        self.clock = DeviceClock(CudaEvents(self.cuda), most_pending)
        self.steps: list[DeviceStep] = []
        self.count = 0

    def batch(self, load_s: float, step_s: float, synchronous: bool = False) -> None:
        self.clock.ask(self.count)
        self.cuda.clock.sleep(load_s)
        self.clock.deliver(self.count)
        self.cuda.stream.launch(step_s)
        if synchronous:
            self.drain()
        self.steps += self.clock.harvest()
        self.count += 1

    def drain(self) -> None:
        self.cuda.clock.sleep(self.cuda.stream.reached_s() - self.cuda.clock.now())

    def end(self) -> None:
        """The iterator is asked once more, and has no batch; then the device finishes."""
        self.clock.ask(self.count)
        self.clock.leave()
        self.drain()
        self.steps += self.clock.harvest()

    @property
    def starved_fraction(self) -> float:
        starved = sum(step.starved_s for step in self.steps)
        return starved / (starved + sum(step.busy_s for step in self.steps))


def test_a_step_that_overlaps_with_loading_starves_the_device_for_the_rest():
    loop = Loop()
    for _ in range(50):
        loop.batch(load_s=10 * MS, step_s=5 * MS)
    loop.end()
    assert [step.batch for step in loop.steps] == list(range(50))
    assert loop.steps[0].starved_s == pytest.approx(10 * MS), "nothing was queued before"
    assert all(step.starved_s == pytest.approx(5 * MS) for step in loop.steps[1:])
    assert all(step.busy_s == pytest.approx(5 * MS) for step in loop.steps)


def test_a_loop_that_runs_ahead_waits_on_the_host_while_the_device_is_never_starved():
    loop = Loop()
    for _ in range(100):
        loop.batch(load_s=2 * MS, step_s=10 * MS)
    loop.end()
    assert len(loop.steps) == 100
    assert sum(step.starved_s for step in loop.steps[1:]) == 0.0
    assert all(step.busy_s == pytest.approx(10 * MS) for step in loop.steps)


def test_a_loop_that_waits_for_each_step_starves_the_device_as_long_as_the_host_waits():
    loop = Loop()
    for _ in range(20):
        loop.batch(load_s=10 * MS, step_s=5 * MS, synchronous=True)
    loop.end()
    assert loop.starved_fraction == pytest.approx(10 / 15)


times = st.floats(0, 0.05).map(lambda seconds: round(seconds, 6))


@given(st.lists(st.tuples(times, times, st.booleans()), min_size=1, max_size=40))
def test_any_loop_starves_the_device_for_exactly_its_idle_time(batches):
    loop = Loop()
    for load_s, step_s, synchronous in batches:
        loop.batch(load_s, step_s, synchronous)
    loop.end()
    assert [step.batch for step in loop.steps] == list(range(len(batches)))
    starved_s = sum(step.starved_s for step in loop.steps)
    assert starved_s == pytest.approx(loop.cuda.stream.idle_s, abs=1e-9)
    busy_s = sum(step.busy_s for step in loop.steps)
    assert starved_s + busy_s == pytest.approx(loop.cuda.clock.now(), abs=1e-9)


def test_time_between_epochs_belongs_to_no_batch():
    loop = Loop()
    for _ in range(2):
        for _ in range(3):
            loop.batch(load_s=1 * MS, step_s=1 * MS, synchronous=True)
        loop.end()
        loop.cuda.stream.launch(5.0)  # validation
        loop.cuda.clock.sleep(7.0)
    assert [step.batch for step in loop.steps] == list(range(6))
    assert sum(step.starved_s + step.busy_s for step in loop.steps) == pytest.approx(12 * MS)


def test_a_step_that_was_left_has_no_end_and_is_not_measured():
    loop = Loop()
    for _ in range(3):
        loop.batch(load_s=1 * MS, step_s=1 * MS, synchronous=True)
    loop.clock.leave()  # break
    loop.clock.leave()  # and again, when the iterator goes
    loop.cuda.clock.sleep(7.0)
    for _ in range(3):
        loop.batch(load_s=1 * MS, step_s=1 * MS, synchronous=True)
    loop.end()
    assert [step.batch for step in loop.steps] == [0, 1, 3, 4, 5]
    assert all(step.busy_s == pytest.approx(1 * MS) for step in loop.steps)


def test_a_clock_that_begins_within_a_step_begins_with_the_next():
    loop = Loop()
    loop.clock.deliver(0)  # CUDA came into use after batch 0 was asked for
    loop.count = 1
    loop.batch(load_s=1 * MS, step_s=1 * MS)
    loop.end()
    assert [step.batch for step in loop.steps] == [1]


def test_with_nothing_ready_one_event_is_asked_for():
    loop = Loop()
    loop.cuda.stream.launch(100.0)
    for _ in range(200):
        loop.batch(load_s=0.0, step_s=1 * MS)
    before = loop.cuda.asked
    assert loop.clock.harvest() == []
    assert loop.cuda.asked == before + 1


def test_a_batch_asks_for_one_event_as_a_stream_reaches_them_in_order():
    loop = Loop()
    for _ in range(100):
        loop.batch(load_s=1 * MS, step_s=1 * MS, synchronous=True)
    loop.end()
    assert len(loop.steps) == 100
    assert loop.cuda.queries == 100


def test_events_are_used_again():
    loop = Loop()
    for _ in range(1000):
        loop.batch(load_s=1 * MS, step_s=1 * MS, synchronous=True)
    assert len(loop.steps) == 999
    assert loop.cuda.events_made <= 4


def test_a_device_that_never_gets_there_costs_bounded_memory():
    loop = Loop(most_pending=10)
    loop.cuda.stream.launch(1000.0)
    for _ in range(100):
        loop.batch(load_s=0.0, step_s=0.0)
    assert loop.cuda.events_made <= 22
    loop.end()
    assert [step.batch for step in loop.steps] == list(range(90, 100))


def test_while_a_graph_is_captured_nothing_is_recorded_or_asked():
    loop = Loop()
    loop.batch(load_s=1 * MS, step_s=1 * MS, synchronous=True)
    loop.cuda.capturing = True
    loop.batch(load_s=1 * MS, step_s=1 * MS, synchronous=True)
    assert loop.steps == []
    made = loop.cuda.events_made
    loop.cuda.capturing = False
    for _ in range(3):
        loop.batch(load_s=1 * MS, step_s=1 * MS, synchronous=True)
    loop.end()
    assert made == 2
    assert [step.batch for step in loop.steps] == [2, 3, 4]


def test_a_change_of_device_drops_the_batch_in_between():
    loop = Loop()
    other = FakeStream(loop.cuda.clock, device_index=1)
    loop.batch(load_s=1 * MS, step_s=1 * MS, synchronous=True)
    loop.cuda.stream = other
    for _ in range(2):
        loop.batch(load_s=1 * MS, step_s=1 * MS, synchronous=True)
    loop.end()
    assert [step.batch for step in loop.steps] == [1, 2]


def test_times_between_streams_are_never_negative():
    loop = Loop()
    loop.cuda.stream.launch(50 * MS)
    loop.clock.ask(0)
    loop.cuda.stream = FakeStream(loop.cuda.clock)
    loop.clock.deliver(0)  # reached at once, before the request on the other stream
    loop.clock.ask(1)
    assert loop.clock.harvest() == [], "all three must be reached"
    loop.cuda.clock.sleep(50 * MS)
    assert loop.clock.harvest() == [DeviceStep(0, 0.0, 0.0)]


@pytest.mark.parametrize("at", ["ask", "deliver", "harvest"])
def test_an_error_of_the_driver_stops_the_clock_and_not_the_training(at):
    loop = Loop()
    loop.batch(load_s=1 * MS, step_s=1 * MS)
    loop.clock.ask(1)
    loop.cuda.failure = RuntimeError("CUDA error: device-side assert triggered\nmore advice")
    {
        "ask": lambda: loop.clock.ask(2),
        "deliver": lambda: loop.clock.deliver(1),
        "harvest": loop.clock.harvest,
    }[at]()
    assert loop.clock.reason == "RuntimeError: CUDA error: device-side assert triggered"
    loop.cuda.failure = None
    asked = loop.cuda.asked
    loop.batch(load_s=1 * MS, step_s=1 * MS)
    loop.end()
    assert loop.steps == []
    assert loop.cuda.asked == asked, "it has stopped for good"


def test_cuda_is_neither_imported_nor_initialised():
    code = (
        "import sys; from pipeprof.measure import copies, device, nvml\n"
        "assert device.cuda_events() is None and nvml.current_device() is None\n"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_there_are_no_events_before_cuda_is_in_use(monkeypatch):
    import torch

    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: False)
    assert cuda_events() is None
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    assert isinstance(cuda_events(), CudaEvents)
