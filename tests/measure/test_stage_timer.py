"""Spans add up to the batch that their thread is making, and to nothing else."""

import pickle
import threading
import time
import timeit

import pytest
from torch.utils.data import DataLoader

import pipeprof
from pipeprof.errors import UsageError
from pipeprof.measure.clock import FakeClock
from pipeprof.measure.stage_timer import Tally, record_read, stage, tallied
from pipeprof.model import Stage
from tests.loaders.forms import Act


def test_spans_of_a_stage_add_up():
    with tallied(Tally()) as tally:
        record_read(1.0, 1.5, 10, 1)
        record_read(2.0, 2.25, 5, 2)
        tally.charge(Stage.DECODE, 2.0)
    assert tally.seconds == {Stage.READ: 0.75, Stage.DECODE: 2.0}
    assert (tally.bytes, tally.requests, tally.charges) == (15, 3, 3)


def test_without_a_batch_recording_is_harmless():
    record_read(0.0, 1.0, 0, 0)
    with stage(Stage.DECODE):
        pass


def test_a_stage_that_raises_is_recorded_and_raises():
    clock = FakeClock()

    @stage(Stage.TRANSFORM)
    def fail():
        clock.sleep(2.0)
        raise KeyError("x")

    with tallied(Tally(clock=clock)) as tally, pytest.raises(KeyError):
        fail()
    assert tally.seconds == {Stage.TRANSFORM: 2.0}


def test_threads_do_not_mix():
    other = Tally()

    def elsewhere():
        with tallied(other):
            record_read(0.0, 1.0, 0, 0)

    with tallied(Tally()) as mine:
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
    assert mine.seconds == {}
    assert other.seconds == {Stage.READ: 1.0}


def test_an_inner_batch_does_not_end_the_outer():
    with tallied(Tally()) as outer:
        with tallied(Tally()) as inner:
            record_read(0.0, 1.0, 0, 0)
        record_read(0.0, 2.0, 0, 0)
    assert (inner.seconds[Stage.READ], outer.seconds[Stage.READ]) == (1.0, 2.0)


def test_a_stage_within_a_stage_counts_once():
    clock = FakeClock()
    with tallied(Tally(clock=clock)) as tally:
        tally.cpu_s = {}
        with stage("decode"):
            clock.sleep(2.0)
            with stage("read"):
                clock.sleep(3.0)
                clock.compute(0.5)
            record_read(6.0, 6.5, 0, 0)  # as a store does
            clock.compute(1.0)
        with stage("transform"):
            clock.sleep(1.0)
    assert tally.seconds == {Stage.READ: 4.0, Stage.DECODE: 2.5, Stage.TRANSFORM: 1.0}
    assert tally.cpu_s == {Stage.READ: 0.5, Stage.DECODE: 1.0, Stage.TRANSFORM: 0.0}


class Keeps:
    """A data set may keep what `stage` gives, and is sent to its workers."""

    def __init__(self):
        self.decoding = stage("decode")


def test_what_stage_gives_can_be_kept_and_sent_to_a_worker():
    kept = pickle.loads(pickle.dumps(Keeps()))
    with tallied(Tally()) as tally:
        for _ in range(3):
            with kept.decoding:
                pass
    assert list(tally.seconds) == [Stage.DECODE]


def test_a_function_that_many_threads_run_at_once_counts_for_each_what_it_did_itself():
    rounds, meet, sums = 40, threading.Barrier(4), {}

    @stage("transform")
    def meeting():
        meet.wait(30)  # all four are within it

    def make(number):
        with tallied(Tally()) as mine:
            start = time.perf_counter()
            for _ in range(rounds):
                meeting()
            sums[number] = dict(mine.seconds), time.perf_counter() - start

    threads = [threading.Thread(target=make, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(sums) == [0, 1, 2, 3]
    for seconds, took in sums.values():
        assert list(seconds) == [Stage.TRANSFORM]
        assert 0 < seconds[Stage.TRANSFORM] <= took


CLOCK = FakeClock()


@stage("decode")
def decorated(value):
    """Doc."""
    CLOCK.sleep(0.25)
    return value + 1


def test_as_a_decorator_it_changes_nothing_but_the_tally():
    assert decorated(1) == 2
    assert (decorated.__name__, decorated.__doc__) == ("decorated", "Doc.")
    assert pickle.loads(pickle.dumps(decorated)) is decorated
    with tallied(Tally(clock=CLOCK)) as tally:
        assert decorated(value=2) == 3
        assert decorated(3) == 4
    assert tally.seconds == {Stage.DECODE: 0.5}


@pytest.mark.parametrize("name", ["decoding", "wait", "fetch", "", "Decode"])
def test_another_name_is_refused(name):
    with pytest.raises(UsageError, match="use one of read, decode, transform, collate"):
        stage(name)


@pytest.mark.parametrize("workers", [0, 1])
def test_another_name_in_a_data_set_is_refused_with_the_same_words(workers):
    batches = iter(pipeprof.wrap(DataLoader(Act(stage_of_no_name), num_workers=workers)))
    with pytest.raises(UsageError, match="'decoding' is not a stage of making a batch; use one of"):
        next(batches)
    getattr(batches, "_shutdown_workers", lambda: None)()


def stage_of_no_name(index):
    with stage("decoding"):
        pass


@pytest.mark.timed
def test_it_is_next_to_free_when_nobody_profiles():
    def bare():
        pass

    idle = stage("decode")(bare)
    rounds = 20_000
    plain = min(timeit.repeat(bare, number=rounds, repeat=5))
    cost = (min(timeit.repeat(idle, number=rounds, repeat=5)) - plain) / rounds
    assert cost < 5e-6, "a fraction of a microsecond on a quiet machine"
