"""The recorder on a fake clock: every moment is exact."""

import pytest

from pipeprof.measure.clock import FakeClock
from pipeprof.measure.recorder import KEPT_BATCHES, Origin, Recorder
from pipeprof.measure.ring import WorkerRecord

RECORD = WorkerRecord(0.5, 1.5, 0.2, 0.3, 0.1, 0.1, 0.4, bytes=100, requests=2)


def test_moments_of_a_batch():
    clock = FakeClock(10.0)
    recorder = Recorder(clock)
    recorder.begin_epoch()
    clock.sleep(0.25)
    recorder.ask()
    clock.sleep(0.5)
    recorder.deliver(8, Origin(1, 10.6, RECORD), expects_record=True)
    clock.sleep(2.0)
    recorder.ask()
    clock.sleep(1.0)
    recorder.deliver(8, Origin(), expects_record=False)
    clock.sleep(3.0)
    recorder.leave()

    log = recorder.log()
    assert log.index == (0, 1)
    assert log.asked_s == (10.25, 12.75)
    assert log.delivered_s == (10.75, 13.75)
    assert log.done_s == (12.75, 16.75)
    assert log.arrived_s == (10.6, None)
    assert log.worker == (1, -2)
    assert log.samples == (8, 8)
    assert log.fetch_start_s == (0.5, None)
    assert log.bytes == (100, 0)
    assert log.requests == (2, 0)
    assert recorder.first_batch_s == [0.75]
    assert recorder.lost_records == 0


def test_leaving_twice_does_not_stretch_the_last_step():
    clock = FakeClock()
    recorder = Recorder(clock)
    recorder.begin_epoch()
    recorder.ask()
    recorder.deliver(1, Origin(), expects_record=False)
    clock.sleep(1)
    recorder.leave()
    clock.sleep(5)
    recorder.leave()
    assert recorder.log().done_s == (1.0,)


def test_epochs_are_counted_and_timed_apart():
    clock = FakeClock()
    recorder = Recorder(clock)
    for start_up in (2.0, 0.5):
        recorder.begin_epoch()
        clock.sleep(start_up)
        for _ in range(2):
            recorder.ask()
            recorder.deliver(1, Origin(), expects_record=False)
    assert recorder.log().epoch == (0, 0, 1, 1)
    assert recorder.first_batch_s == [2.0, 0.5]


def test_a_record_that_does_not_come_is_counted():
    recorder = Recorder(FakeClock())
    recorder.begin_epoch()
    recorder.ask()
    recorder.deliver(1, Origin(0, 1.0, None), expects_record=True)
    assert recorder.lost_records == 1


def test_memory_is_bounded():
    recorder = Recorder(FakeClock())
    recorder.begin_epoch()
    for _ in range(KEPT_BATCHES + 10):
        recorder.ask()
        recorder.deliver(1, Origin(), expects_record=False)
    log = recorder.log()
    assert len(log.index) == KEPT_BATCHES
    assert log.index[-1] == KEPT_BATCHES + 9


def test_no_batch_gives_an_empty_log():
    log = Recorder(FakeClock()).log()
    assert log.index == log.requests == ()


def test_a_delivery_must_be_asked_for():
    with pytest.raises(AssertionError, match="nobody asked"):
        Recorder(FakeClock()).deliver(1, Origin(), expects_record=False)
