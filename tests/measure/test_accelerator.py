"""The emulated accelerator takes as long as it was told to."""

import time

import pytest

from pipeprof.errors import UsageError
from pipeprof.measure.accelerator import EmulatedAccelerator
from pipeprof.measure.clock import FakeClock, SystemClock


class OversleepingClock(FakeClock):
    """A kernel that wakes sleepers 60 µs late."""

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds + 60e-6)


def test_the_overshoot_of_sleeping_is_taken_off():
    clock = OversleepingClock()
    accelerator = EmulatedAccelerator(0.010, clock)
    start = clock.now()
    for _ in range(100):
        accelerator.step(None)
    assert clock.now() - start == pytest.approx(1.0, abs=1e-6)


def test_a_real_step_is_never_shorter_by_much_and_uses_no_cpu():
    accelerator = EmulatedAccelerator(0.02)
    clock, cpu = SystemClock(), time.thread_time()
    start = clock.now()
    for _ in range(10):
        accelerator.step(None)
    assert clock.now() - start > 0.19
    assert time.thread_time() - cpu < 0.05


def test_a_step_of_nothing_does_not_sleep():
    clock = OversleepingClock()
    EmulatedAccelerator(0.0, clock).step(None)
    assert clock.now() == 0


@pytest.mark.parametrize("wrong", [-0.001, float("nan")])
def test_an_impossible_step_is_refused(wrong):
    with pytest.raises(UsageError, match="impossible"):
        EmulatedAccelerator(wrong)


def test_it_says_what_it_is():
    assert EmulatedAccelerator(0.01).label == "emulated: a sleep of 10.0 ms a step"
    named = EmulatedAccelerator(0.01, name="resnet50/h100")
    assert named.label == "emulated: resnet50/h100, a sleep of 10.0 ms a step"
