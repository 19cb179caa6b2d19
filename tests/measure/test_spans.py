"""Spans add up to the batch that their thread is making, and to nothing else."""

import threading

import pytest

from pipeprof.measure.spans import Tally, record, stage, tallied
from pipeprof.model import Span, Stage


def test_spans_of_a_stage_add_up():
    with tallied(Tally(keep_spans=True)) as tally:
        record(Span(Stage.READ, 1.0, 1.5, bytes=10, requests=1))
        record(Span(Stage.READ, 2.0, 2.25, bytes=5, requests=2))
        record(Span(Stage.DECODE, 2.25, 4.25))
    assert tally.seconds == {Stage.READ: 0.75, Stage.DECODE: 2.0}
    assert (tally.bytes, tally.requests) == (15, 3)
    assert [span.stage for span in tally.spans] == [Stage.READ, Stage.READ, Stage.DECODE]


def test_without_a_batch_recording_is_harmless():
    record(Span(Stage.READ, 0.0, 1.0))
    with stage(Stage.DECODE):
        pass


def test_a_stage_that_raises_is_recorded_and_raises():
    with tallied(Tally()) as tally, pytest.raises(KeyError), stage(Stage.TRANSFORM):
        raise KeyError("x")
    assert tally.seconds[Stage.TRANSFORM] > 0


def test_threads_do_not_mix():
    other = Tally()

    def elsewhere():
        with tallied(other):
            record(Span(Stage.READ, 0.0, 1.0))

    with tallied(Tally()) as mine:
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
    assert mine.seconds == {}
    assert other.seconds == {Stage.READ: 1.0}


def test_an_inner_batch_does_not_end_the_outer():
    with tallied(Tally()) as outer:
        with tallied(Tally()) as inner:
            record(Span(Stage.READ, 0.0, 1.0))
        record(Span(Stage.READ, 0.0, 2.0))
    assert (inner.seconds[Stage.READ], outer.seconds[Stage.READ]) == (1.0, 2.0)
