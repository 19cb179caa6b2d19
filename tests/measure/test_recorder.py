"""The recorder on a fake clock: every moment is exact."""

import numpy as np
import pytest

from pipeprof.measure.clock import FakeClock
from pipeprof.measure.loader_pass import FLUSH_EVERY, FLUSH_RECORDED_EVERY
from pipeprof.measure.recorder import KEPT_EPOCHS, WINDOW, Recorder
from pipeprof.model import Epoch
from tests.analyze.pipelines import begun

KNOWN = {"worker": 1, "samples": 8, "received_s": 10.5, "arrived_s": 10.6, "pinned_s": 10.65,
         "sampler_s": 0.01, "fetch_start_s": 0.5, "sent_s": 1.6, "bytes": 100,
         "requests": 2}  # fmt: skip


def test_moments_of_a_batch():
    clock = FakeClock(10.0)
    recorder = Recorder(clock)
    turn = begun(recorder)
    clock.sleep(0.25)
    turn.ask()
    clock.sleep(0.5)
    turn.deliver(KNOWN)
    clock.sleep(2.0)
    turn.ask()
    clock.sleep(1.0)
    turn.deliver({})
    clock.sleep(3.0)
    turn.leave()

    log = recorder.log()
    assert log.index == log.nth == (0, 1)
    assert log.asked_s == (10.25, 12.75)
    assert log.delivered_s == (10.75, 13.75)
    assert log.done_s == (12.75, 16.75)
    assert (log.received_s, log.arrived_s) == ((10.5, None), (10.6, None))
    assert log.pinned_s == (10.65, None)
    assert log.worker == (1, -2)
    assert log.samples == (8, 8), "a batch of which nothing is known is taken to be as the others"
    assert (log.fetch_start_s, log.sent_s) == ((0.5, None), (1.6, None))
    assert (log.bytes, log.requests) == ((100, None), (2, None))
    assert log.sampler_s == (0.01, None)
    assert log.decode_s == (), "nothing is known of it"
    assert recorder.lost_records == 0
    assert recorder.wall_s == 6.75


def test_the_batch_under_way_counts_when_its_step_has_ended():
    recorder = Recorder(FakeClock())
    turn = begun(recorder)
    turn.ask()
    turn.deliver({"samples": 1})
    assert recorder.log().index == ()
    turn.ask()
    turn.deliver({"samples": 2})
    assert recorder.log().samples == (1,)
    turn.leave()
    assert recorder.log().samples == (1, 2)


def test_a_source_that_fails_costs_what_it_knew_and_nothing_else():
    class Broken:
        def columns(self, keys, moments):
            raise RuntimeError("a torch that we do not know")

    recorder = Recorder(FakeClock())
    turn = recorder.begin()
    turn.source = Broken()
    turn.ask()
    turn.deliver(None)
    turn.leave()
    assert (recorder.log().samples, recorder.log().worker) == ((1,), (-2,))
    assert recorder.lost_records == 1


def test_an_epoch_is_timed_from_the_request_for_the_iterator_to_its_end():
    clock = FakeClock(1.0)
    recorder = Recorder(clock)
    turn = begun(recorder)
    clock.sleep(0.5)
    turn.started()
    clock.sleep(0.25)
    for _ in range(2):
        turn.ask()
        turn.deliver({"samples": 1})
        clock.sleep(1.0)
    turn.ask()
    clock.sleep(0.125)
    turn.leave(exhausted=True)
    clock.sleep(5)
    turn.leave()
    assert list(recorder.epochs) == [Epoch(0, 1.0, 2, 2.875, 0.5, 0.75, 0.125)]
    assert recorder.first_batch_s == 0.75
    assert recorder.log().done_s == (2.75, 3.75)


def test_passes_within_one_another_do_not_mix():
    clock = FakeClock()
    recorder = Recorder(clock)
    outer = begun(recorder)
    outer.ask()
    outer.deliver({"samples": 1})
    inner = begun(recorder)
    for _ in range(2):
        inner.ask()
        clock.sleep(0.5)
        inner.deliver({"samples": 1})
        clock.sleep(1)
    inner.leave()
    outer.leave()
    log = recorder.log()
    assert log.epoch == (1, 1, 0)
    assert log.index == (0, 1, 2), "in the order in which their steps ended"
    assert log.nth == (0, 1, 0)
    assert log.done_s == (1.5, 3.0, 3.0)


def test_a_record_that_does_not_come_is_counted():
    recorder = Recorder(FakeClock())
    turn = begun(recorder)
    turn.ask()
    turn.deliver(None)
    turn.leave()
    assert recorder.lost_records == 1


def test_what_is_no_longer_kept_is_folded_once_and_in_order():
    seen = []
    recorder = Recorder(FakeClock(), fold=lambda arrays: seen.append(arrays["index"].copy()))
    turn = begun(recorder)
    for _ in range(5 * WINDOW + 10):
        turn.ask()
        turn.deliver({"samples": 1})
    turn.leave()
    log = recorder.log()
    assert WINDOW <= len(log.index) < 2 * WINDOW
    everything = np.concatenate([*seen, log.index])
    assert (everything == np.arange(5 * WINDOW + 10)).all()


def test_the_rest_of_a_row_is_filled_in_for_many_at_once():
    asked = []

    class Counting:
        def columns(self, keys, moments):
            asked.append(len(keys))
            raise ValueError

    recorder = Recorder(FakeClock())
    turn = recorder.begin()
    turn.source = Counting()
    for _ in range(2 * FLUSH_EVERY + 5):
        turn.ask()
        turn.deliver(None)
    turn.leave()
    assert asked == [FLUSH_EVERY, FLUSH_EVERY, 5]


def test_fewer_batches_wait_while_they_are_recorded():
    clock = FakeClock()
    turn = begun(Recorder(clock))
    for _ in range(FLUSH_RECORDED_EVERY):
        turn.ask()
        turn.deliver({"samples": 1})
        clock.sleep(1)
    turn.ask()
    turn.flush_if_full(1)
    assert turn.pending == FLUSH_RECORDED_EVERY
    turn.flush_if_full(1, FLUSH_RECORDED_EVERY)
    assert turn.pending == 0


def test_a_pass_that_was_not_flushed_in_time_is_added_in_parts():
    recorder, heard = Recorder(FakeClock()), []
    recorder.on_rows = heard.append
    turn = begun(recorder)
    turn.notes += [(0.0, 0.0, {"samples": number}) for number in range(2 * FLUSH_EVERY + 5)]
    turn.leave()
    assert [len(table) for table in heard] == [FLUSH_EVERY, FLUSH_EVERY, 5]
    assert recorder.log().samples == tuple(range(2 * FLUSH_EVERY + 5))


def test_short_passes_are_filled_in_together_and_in_order():
    recorder, heard = Recorder(FakeClock()), []
    recorder.on_rows = heard.append
    for number in range(20):
        turn = begun(recorder)
        turn.may_fill_later = True
        for _ in range(2):
            turn.ask()
            turn.deliver({"samples": number})
        turn.leave()
    assert recorder.count == 40
    assert len(heard) == 16, "of eight passes at a time"
    assert recorder.log().samples == tuple(number for number in range(20) for _ in range(2))
    assert [epoch.batches for epoch in recorder.epochs] == [2] * 20


def test_a_pass_that_may_wait_is_filled_in_before_what_comes_after_it():
    recorder = Recorder(FakeClock())
    for may_fill_later in (True, False):
        turn = begun(recorder)
        turn.may_fill_later = may_fill_later
        turn.ask()
        turn.deliver({"samples": int(may_fill_later)})
        turn.leave()
    assert recorder.lost_records == 0
    assert recorder.log().samples == (1, 0)


def test_epochs_are_bounded_too():
    recorder = Recorder(FakeClock())
    for _ in range(KEPT_EPOCHS + 5):
        recorder.begin().leave()
    assert [epoch.index for epoch in recorder.epochs][:1] == [5]
    assert recorder.epoch_count == KEPT_EPOCHS + 5


def test_what_the_device_tells_later_finds_its_batch():
    recorder = Recorder(FakeClock())
    turn = begun(recorder)
    for _ in range(3):
        turn.ask()
        turn.deliver({"samples": 1})
    turn.leave()
    recorder.note_device(1, 0.25, 0.5)
    recorder.note_copy(0, 0.125, 4096)
    recorder.note_copy(0, 0.25, 1)
    for _ in range(2):
        log = recorder.log()
        assert log.device_wait_s == (None, 0.25, None)
        assert log.device_busy_s == (None, 0.5, None)
        assert (log.h2d_s, log.h2d_bytes) == ((0.375, None, None), (4097.0, None, None))


def test_no_batch_gives_an_empty_log():
    log = Recorder(FakeClock()).log()
    assert log.index == log.requests == ()
    assert Recorder(FakeClock()).wall_s == 0.0


@pytest.mark.parametrize("kept", [True, False])
def test_the_steps_of_a_run_are_all_that_is_in_its_wall_time(kept):
    clock = FakeClock(5.0)
    recorder = Recorder(clock)
    turn = begun(recorder)
    for _ in range(3 * WINDOW if kept else 3):
        turn.ask()
        turn.deliver({"samples": 1})
        clock.sleep(0.5)
    turn.leave()
    assert recorder.wall_s == pytest.approx(0.5 * recorder.count)


def test_who_looks_at_a_run_hears_of_its_rows_and_may_ask_for_them_early():
    recorder, heard = Recorder(FakeClock()), []
    recorder.on_rows = heard.append
    turn = begun(recorder)
    for number in range(600):
        turn.ask()
        turn.deliver({"samples": number})
        if number % 100 == 99:
            turn.flush()
    assert [len(table) for table in heard] == [99, 100, 100, 100, 100, 100]
    assert recorder.log().samples == tuple(range(599))


def test_a_pass_that_another_takes_the_place_of_leaves_no_trace():
    clock = FakeClock(5.0)
    recorder = Recorder(clock)
    dropped = recorder.begin()
    clock.sleep(1.0)
    dropped.drop()
    turn = begun(recorder)
    clock.sleep(0.5)
    turn.ask()
    turn.deliver(KNOWN)
    clock.sleep(2.0)
    dropped.leave(exhausted=True)
    turn.leave()
    assert [(each.index, each.began_s, each.batches) for each in recorder.epochs] == [(0, 6.0, 1)]
    assert recorder.log().epoch == (0,)
    assert recorder.wall_s == 2.5
