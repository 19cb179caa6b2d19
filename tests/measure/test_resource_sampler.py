"""Which batches are sampled, and what a sample holds."""

import random
import threading
from math import isnan

import pytest

from pipeprof.measure.clock import FakeClock
from pipeprof.measure.resource_sampler import SAMPLE_EVERY_S, ResourceSampler
from pipeprof.measure.ring import RESOURCE_FIELDS


def one_tensor(batch):
    return 1, 400, 8


class Ticking(FakeClock):
    """To look at it takes ``tick_s``."""

    tick_s = 0.0

    def now(self):
        self.sleep(self.tick_s)
        return super().now()


def sampled_of(batch_s, batches, sample_s=0.0):
    """The numbers of the batches that are sampled when each takes ``batch_s(number)``, and to
    begin a sample ``sample_s``."""
    clock = Ticking()
    clock.tick_s = sample_s
    meter, now, sampled = ResourceSampler(one_tensor, clock=clock), 0.0, []
    for number in range(batches):
        if meter.skip:
            meter.skip -= 1
        else:
            meter.begin(now)
            sampled.append(number)
        now += batch_s(number)
    return sampled


def test_long_batches_are_all_sampled():
    assert len(sampled_of(lambda number: 2 * SAMPLE_EVERY_S, 100)) == 100


def test_short_batches_are_sampled_at_a_bounded_rate():
    sampled = sampled_of(lambda number: SAMPLE_EVERY_S / 10, 20_000)
    assert 1_800 < len(sampled) < 2_200


@pytest.mark.parametrize(("batch_s", "second"), [(0.0005, 2), (2 * SAMPLE_EVERY_S, 1)])
def test_the_second_sample_of_a_fast_loader_comes_after_the_warm_up(batch_s, second):
    """Figures are made of it, and of none of the first batches; slow ones are all sampled."""
    clock = FakeClock()
    meter, sampled = ResourceSampler(one_tensor, clock=clock, warmup=2), []
    for number in range(20):
        if meter.skip:
            meter.skip -= 1
            clock.sleep(batch_s)
            continue
        meter.begin(clock.now())
        sampled.append(number)
        clock.sleep(batch_s)
        meter.end([], 0.0)
    assert sampled[:2] == [0, second]


def test_samples_that_are_dear_become_rare():
    """At 100 µs each they may come every 0.33 s; the first come as soon as ever."""
    sampled = sampled_of(lambda number: SAMPLE_EVERY_S / 10, 40_000, 100e-6)
    assert 530 < len(sampled) < 710
    assert sampled[19] < 450
    assert 380 < len(sampled_of(lambda number: SAMPLE_EVERY_S / 10, 40_000, 1.0)) < 470


def test_a_slow_batch_is_sampled_as_often_as_any_other():
    """By time it would be sampled hardly ever: while it is slow, no moment to sample passes."""
    sampled = sampled_of(lambda number: 0.08 if number % 20 == 19 else 0.004, 100_000)
    slow = sum(number % 20 == 19 for number in sampled)
    assert 0.045 < slow / len(sampled) < 0.055


def test_a_sample_holds_the_machine_and_now_and_then_the_batch():
    clock = FakeClock()
    meter = ResourceSampler(one_tensor, clock=clock)
    meter.begin(1.0)
    first = dict(zip(RESOURCE_FIELDS, meter.end([], 0.25), strict=True))
    meter.begin(2.0)
    second = dict(zip(RESOURCE_FIELDS, meter.end([], 0.0), strict=True))
    assert (first["tensors"], first["batch_bytes"]) == (1, 400)
    assert first["cpu_s"] == 0.25
    assert isnan(second["tensors"]), "gauges are dearer, and rarer"
    assert second["cpu_s"] == 0


def test_what_the_thread_computes_around_a_batch_is_no_other_thread() -> None:
    clock = FakeClock()
    meter = ResourceSampler(one_tensor, clock=clock)
    meter.begin(1.0)
    clock.compute(0.5)  # of which the process has computed nothing, as it is made up
    sample = dict(zip(RESOURCE_FIELDS, meter.end([], 0.3), strict=True))
    assert sample["process_cpu_s"] == pytest.approx(-0.2, abs=0.1)


def test_a_batch_that_could_not_be_made_is_not_weighed():
    meter = ResourceSampler(one_tensor)
    meter.begin(1.0)
    assert isnan(dict(zip(RESOURCE_FIELDS, meter.end(None, 0.0), strict=True))["tensors"])


@pytest.mark.parametrize("whole", [False, True])
def test_a_workers_memory_is_looked_at_after_a_second_or_at_once(whole):
    """That walks its page tables: milliseconds, of which a short run has few."""
    clock, known = FakeClock(), []
    meter = ResourceSampler(one_tensor, whole, clock)
    for pause_s in (0.0, 0.9, 0.2, 0.1):
        clock.sleep(pause_s)
        meter.begin(clock.now())
        told = dict(zip(RESOURCE_FIELDS, meter.end([], 0.0), strict=True))
        known.append(not isnan(told["private_bytes"]))
    assert known == [whole, whole, True, True]


def test_without_a_beginning_nothing_is_known():
    assert all(map(isnan, ResourceSampler(one_tensor).end([], 0.0)))


def test_it_follows_the_thread_that_makes_batches():
    meter, told = ResourceSampler(one_tensor), []

    def make():
        meter.begin(1.0)
        told.append(meter.end([], 0.0))

    make()
    thread = threading.Thread(target=make)
    thread.start()
    thread.join()
    assert len(told) == 2


def test_the_users_random_numbers_are_left_alone():
    before = random.getstate()
    sampled_of(lambda number: 0.001, 1000)
    assert random.getstate() == before
