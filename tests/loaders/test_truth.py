"""Pipelines of known truth, beyond the sleeps of `test_wrap`: the right cause is blamed."""

from __future__ import annotations

import time

import pytest
import torch
from torch.utils.data import DataLoader

import pipeprof
from pipeprof.measure.clock import SYSTEM_CLOCK, FakeClock
from tests.loaders.forms import (
    Act,
    Backwards,
    Marked,
    SlowToReceive,
    SlowToSend,
    assert_recorded,
    pretend_accelerator,
    profiled,
)

CLOCK = FakeClock()
"""Here and, as a copy, in each worker: batches that know no clock take their time by it."""


def measured(dataset, step_s=0.001, clock=SYSTEM_CLOCK, **options):
    loader = profiled(DataLoader(dataset, **options), clock, whole=True)
    for _ in loader:
        clock.sleep(step_s)
    return loader.profile()


@pytest.mark.parametrize("workers", [0, 1])
def test_a_slow_sampler_is_blamed_in_main(workers):
    clock = FakeClock()
    sampler = Backwards(pause_s=5.0, length=80, clock=clock)
    profile = measured(
        Act(lambda index: None), clock=clock, batch_size=4, sampler=sampler, num_workers=workers
    )
    assert profile.diagnosis.bottleneck == "sampler"
    assert profile.blame["sampler"] == pytest.approx(profile.stall_s, rel=0.01)


@pytest.mark.timed
@pytest.mark.parametrize(
    ("slow", "stage"), [(SlowToSend, "serialise"), (SlowToReceive, "unpickle")]
)
def test_a_batch_that_is_slow_to_travel(slow, stage):
    profile = measured(
        Act(lambda index: None),
        num_workers=1,
        collate_fn=lambda samples: slow(0.008),
    )
    assert profile.stages[stage].p50_s == pytest.approx(0.008, rel=0.5)
    assert profile.stages["transfer"].p50_s >= profile.stages[stage].p50_s
    assert profile.diagnosis.bottleneck == "transfer"
    assert profile.blame["transfer"] > 0.8 * profile.stall_s


class SleepsToReceive(SlowToReceive):
    """Sleeps when it is unpickled, on the clock of that process."""

    def __setstate__(self, pause_s):
        CLOCK.sleep(pause_s)


class ComputesToReceive(SlowToReceive):
    """Computes when it is unpickled, on the clock of that process."""

    def __setstate__(self, pause_s):
        CLOCK.compute(pause_s)


@pytest.mark.parametrize("pinned", [False, True])
@pytest.mark.parametrize(
    ("slow", "computes"), [(ComputesToReceive, True), (SleepsToReceive, False)]
)
def test_what_main_computes_to_have_a_batch_is_told_from_what_it_waits(
    monkeypatch, slow, computes, pinned
):
    if pinned:
        pretend_accelerator(monkeypatch, pin_s=0.0)
    loader = profiled(DataLoader(
        Act(lambda index: None), num_workers=1, pin_memory=pinned,
        collate_fn=lambda samples: slow(0.008),
    ), CLOCK, whole=True)  # fmt: skip
    for _ in loader:
        pass
    taken_s = [each for each in loader.recording().batches.unpickled_cpu_s if each is not None]
    assert len(taken_s) >= len(loader.recording().batches.index) - pinned
    assert taken_s == pytest.approx([0.008 * computes] * len(taken_s))


def count(seconds):
    """Compute in Python without releasing the interpreter lock."""
    end, total = time.thread_time() + seconds, 0
    while time.thread_time() < end:
        for number in range(200):
            total += number


def counted(samples):
    count(0.011)
    return torch.stack(samples)


def a_number(index):
    return torch.zeros(64)


def a_counted_number(index):
    count(0.002)
    return torch.zeros(64)


COUNTING = {
    "1 worker, 16 ms of Python": (a_counted_number, {"num_workers": 1}, "fetch"),
    "1 worker, 11 ms of Python in collate": (
        a_number, {"num_workers": 1, "collate_fn": counted}, "collate",
    ),
    "6 workers, 16 ms of Python": (a_counted_number, {"num_workers": 6}, "fetch"),
}  # fmt: skip


@pytest.mark.timed
@pytest.mark.filterwarnings("ignore:This DataLoader will create 6 worker processes")
@pytest.mark.parametrize(
    "name",
    [
        "1 worker, 16 ms of Python",
        pytest.param("1 worker, 11 ms of Python in collate", marks=pytest.mark.slow),
        pytest.param("6 workers, 16 ms of Python", marks=pytest.mark.slow),
    ],
)
def test_a_batch_that_waits_for_its_workers_interpreter_is_not_slow_to_travel(name):
    """A finished batch waits in the queue while its worker computes the next one. Packing its
    tensors gains nothing, but computing less does."""
    act, options, stage = COUNTING[name]
    profile = measured(Act(act, 1200), 0.003, batch_size=8, **options)
    assert profile.diagnosis.bottleneck in (stage, "worker-cpu"), profile.blame
    assert profile.blame.get("transfer", 0.0) < 0.5 * profile.stall_s
    assert sum(profile.awaited_in.values()) == pytest.approx(profile.stall_s)
    worth = profile.worth
    assert worth[profile.diagnosis.bottleneck].cheaper.share > 0.12
    assert worth["transfer"].cheaper.share < 0.08 if "transfer" in worth else True


@pytest.mark.timed
def test_waiting_for_the_pipe_is_not_serialising():
    """Large batches of bytes go through a pipe of 64 kB, for which the workers wait."""
    large = b"x" * 1_000_000
    profile = measured(
        Act(lambda index: None, 40),
        0.02,
        num_workers=2,
        prefetch_factor=1,
        collate_fn=lambda samples: large,
    )
    assert profile.stages["serialise"].p50_s < 0.008


@pytest.mark.timed
@pytest.mark.filterwarnings("ignore:This DataLoader will create 4 worker processes")
def test_one_slow_batch_holds_up_those_that_come_after_it():
    def act(index):
        time.sleep(0.1 if index % 20 == 7 else 0.002)

    profile = measured(Act(act, 200), num_workers=4, prefetch_factor=2)
    assert profile.stages["reorder"].p99_s > 0.05
    assert profile.stages["reorder"].p50_s < 0.02
    assert profile.diagnosis.bottleneck == "fetch"


@pytest.mark.slow
def test_a_black_box_is_split_by_resource():
    clock = FakeClock()
    busy = measured(Act(lambda index: clock.compute(500.0), 60), clock=clock, num_workers=1)
    assert busy.resources["cpu"].p50_s == pytest.approx(500.0)
    assert busy.resources["blocked"].p50_s == 0
    idle = measured(Act(lambda index: clock.sleep(500.0), 60), clock=clock, num_workers=1)
    assert idle.resources["blocked"].p50_s == pytest.approx(500.0, rel=0.01), (
        "but for the run queue"
    )
    assert idle.resources["cpu"].p50_s == 0


@pytest.mark.timed
def test_the_queue_is_full_when_fed_and_empty_when_starved():
    def pause(index):
        time.sleep(0.008)

    fed = measured(Act(pause, 40), 0.04, num_workers=1, prefetch_factor=4).queue_depth
    assert fed.capacity == 4
    assert fed.p5 >= 3  # a worker that lost its core for a while refills the queue one by one
    assert fed.empty_share == 0
    starved = measured(Act(pause, 60), 0.0, num_workers=1, prefetch_factor=4).queue_depth
    assert starved.empty_share > 0.5
    assert starved.mean < 1


def shares_of_stages_that_take_turns(clock, unit_s, workers):
    def act(index):
        with pipeprof.stage("read"):
            clock.sleep(unit_s)
        with pipeprof.stage("decode"):
            clock.sleep(3 * unit_s)

    profile = measured(Act(act, 160), 8 * unit_s, clock, batch_size=8, num_workers=workers)
    return {stage: seconds / profile.stall_s for stage, seconds in profile.blame.items()}


def test_stages_that_take_turns_share_the_blame_in_proportion():
    shares = shares_of_stages_that_take_turns(FakeClock(), 100.0, workers=0)
    assert shares["read"] == pytest.approx(1 / 4, rel=0.01), "but for the run queue"
    assert shares["decode"] == pytest.approx(3 / 4, rel=0.01)


@pytest.mark.timed
def test_stages_of_a_worker_that_take_turns_share_the_blame_in_proportion():
    # a sleep ends late by up to half a millisecond on a busy machine
    shares = shares_of_stages_that_take_turns(SYSTEM_CLOCK, 0.004, workers=1)
    assert shares["read"] / shares["decode"] == pytest.approx(1 / 3, rel=0.25)
    assert shares["read"] + shares["decode"] > 0.6


@pytest.mark.timed
def test_a_pin_thread_is_seen(monkeypatch):
    pretend_accelerator(monkeypatch, pin_s=0.02)
    loader = pipeprof.wrap(DataLoader(Marked(), 2, num_workers=1, pin_memory=True), whole=True)
    batches = list(loader)
    # the thread waits for the first batch before it can be hooked
    assert_recorded(loader, batches, first_arrival=False)
    profile = loader.profile()
    assert profile.stages["pin"].count == profile.measured_batches
    assert profile.stages["pin"].p50_s == pytest.approx(0.02, rel=0.5)
    assert profile.diagnosis.bottleneck == "pin"
    assert profile.blame["pin"] > 0.7 * profile.stall_s


def test_pinning_without_workers_is_seen(monkeypatch):
    clock = FakeClock()
    pretend_accelerator(monkeypatch, 0.02, clock)
    loader = profiled(DataLoader(Marked(), 2, pin_memory=True), clock)
    list(loader)
    profile = loader.profile()
    assert profile.stages["pin"].p50_s == pytest.approx(0.02)
    assert profile.diagnosis.bottleneck == "pin"


def test_a_batch_that_could_not_be_made_is_not_taken_for_the_next():
    clock = FakeClock()

    def make(index):
        clock.sleep(0.002)
        if index == 3:
            raise ValueError(index)
        return index

    loader = profiled(DataLoader(Act(make, length=6), batch_size=1), clock)
    batches = iter(loader)
    made = [next(batches).item() for _ in range(3)]
    with pytest.raises(ValueError, match="3"):
        next(batches)
    made += [batch.item() for batch in batches]
    log = loader.recording().batches
    assert made == [0, 1, 2, 4, 5]
    assert loader.recording().lost_records == 0
    for place in range(5):
        way = [log.asked_s[place], log.fetch_start_s[place], log.fetch_end_s[place]]
        way += [log.delivered_s[place], log.done_s[place]]
        assert way == sorted(way)
        assert log.fetch_end_s[place] - log.fetch_start_s[place] == pytest.approx(0.002)
