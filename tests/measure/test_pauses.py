"""What is known exactly of pauses, on a fake clock, and `pipeprof.pause` itself."""

import gc
import threading
import weakref
from time import perf_counter

import pytest

import pipeprof
from pipeprof.measure.clock import FakeClock
from pipeprof.measure.loader_pass import Pass
from pipeprof.measure.pauses import MOST_NOTES, NamedInterval
from pipeprof.measure.recorder import Recorder
from pipeprof.model import PauseKind
from tests.analyze.pipelines import begun

CHECKPOINT = PauseKind("checkpoint", "named")


def step(turn: Pass, clock: FakeClock, seconds: float = 1.0) -> None:
    turn.ask()
    turn.deliver({"samples": 1})
    clock.sleep(seconds)


def iterate(recorder: Recorder, clock: FakeClock, batches: int = 2) -> Pass:
    turn = begun(recorder)
    for _ in range(batches):
        step(turn, clock)
    turn.ask()
    return turn


def test_another_loader_that_is_iterated_within_a_step_is_a_pause_of_it() -> None:
    clock = FakeClock()
    train, val = Recorder(clock, name="train"), Recorder(clock, name="val")
    turn = begun(train)
    for number in range(6):
        step(turn, clock)
        if number == 3:
            clock.sleep(0.25)
            iterate(val, clock).leave(exhausted=True)
            clock.sleep(0.5)
    turn.leave()
    log = train.log()
    assert log.pause_s == (None, None, None, 2.0, None, None)
    assert log.pause_kind == (None, None, None, 0, None, None)
    assert train.pauses.kinds == [PauseKind("val", "loader")]
    assert val.log().pause_s == (), "the outer loader is no pause of the inner one"


def test_a_loader_whose_iterator_is_kept_was_over_when_it_was_last_asked() -> None:
    clock = FakeClock()
    train, val = Recorder(clock), Recorder(clock, name="val")
    turn, kept = begun(train), None
    for number in range(6):
        step(turn, clock)
        if number == 3:
            kept = iterate(val, clock)
    turn.leave()
    kept.leave()
    assert train.log().pause_s == (None, None, None, 2.0, None, None)


def test_two_loaders_side_by_side_are_no_pause_of_each_other() -> None:
    clock = FakeClock()
    one, other = Recorder(clock), Recorder(clock)
    first, second = begun(one), begun(other)
    for _ in range(20):
        step(first, clock)
        step(second, clock)
    first.leave()
    second.leave()
    assert one.log().pause_s == other.log().pause_s == ()


def test_a_loader_that_begins_later_and_goes_on_beside_is_none() -> None:
    clock = FakeClock()
    one, other = Recorder(clock), Recorder(clock)
    first = begun(one)
    step(first, clock)
    second = begun(other)
    for _ in range(20):
        step(second, clock)
        step(first, clock)
    first.leave()
    second.leave()
    assert one.log().pause_s == ()


@pytest.mark.parametrize(("every", "pauses"), [(1, 0), (2, 0), (4, 5)])
def test_where_each_step_holds_another_loaders_pass_that_is_the_step(every, pauses) -> None:
    clock = FakeClock()
    outer, inner = Recorder(clock), Recorder(clock)
    turn = begun(outer)
    for number in range(20):
        step(turn, clock)
        if number % every == 0:
            iterate(inner, clock).leave(exhausted=True)
    turn.leave()
    assert sum(value is not None for value in outer.log().pause_s) == pauses


def test_pauses_that_lie_within_one_another_count_once_and_as_the_longest() -> None:
    clock = FakeClock()
    train, val = Recorder(clock), Recorder(clock, name="val")
    turn = begun(train)
    step(turn, clock)
    step(turn, clock)
    step(turn, clock)
    begin_s = clock.now()
    clock.sleep(1.0)
    iterate(val, clock).leave(exhausted=True)
    turn.add_note(NamedInterval(begin_s + 0.25, begin_s + 0.5, PauseKind("inner", "named")))
    turn.add_note(NamedInterval(begin_s, clock.now(), CHECKPOINT))
    turn.leave()
    log = train.log()
    assert log.pause_s == (None, None, 3.0)
    assert train.pauses.kinds[log.pause_kind[2]] == CHECKPOINT


@pytest.mark.parametrize(("phase_s", "name"), [(2.5, "validation"), (0.5, "val")])
def test_a_framework_names_the_pause_that_it_declares_for_most_of_it(phase_s, name) -> None:
    clock = FakeClock()
    train, val = Recorder(clock), Recorder(clock, name="val")
    turn = begun(train)
    for _ in range(3):
        step(turn, clock)
    begin_s = clock.now()
    iterate(val, clock, 3).leave(exhausted=True)
    turn.add_note(NamedInterval(begin_s, begin_s + phase_s, PauseKind("validation", "framework")))
    turn.leave()
    log = train.log()
    assert log.pause_s[2] == 3.0
    assert train.pauses.kinds[log.pause_kind[2]].name == name


@pytest.mark.parametrize(("every", "pauses"), [(1, 0), (2, 0), (3, 7)])
def test_what_a_framework_does_in_every_other_step_is_part_of_the_step(every, pauses) -> None:
    clock, logging = FakeClock(), PauseKind("logging", "framework")
    recorder = Recorder(clock)
    turn = begun(recorder)
    for number in range(20):
        step(turn, clock)
        if number % every == 0:
            turn.add_note(NamedInterval(clock.now() - 0.5, clock.now(), logging))
    turn.leave()
    assert sum(value is not None for value in recorder.log().pause_s) == pauses


def test_what_lies_outside_of_steps_is_no_pause() -> None:
    clock = FakeClock()
    recorder = Recorder(clock)
    turn = begun(recorder)
    clock.sleep(1.0)
    turn.add_note(NamedInterval(0.25, 0.75, CHECKPOINT))  # before the first batch
    turn.ask()
    clock.sleep(1.0)
    turn.deliver({"samples": 1})
    turn.add_note(
        NamedInterval(1.25, 1.75, CHECKPOINT)
    )  # while the batch was made, as in a data set
    clock.sleep(1.0)
    turn.leave()
    turn.add_note(NamedInterval(2.5, 3.5, CHECKPOINT))
    assert recorder.log().pause_s == ()


def test_names_and_notes_are_bounded() -> None:
    clock = FakeClock()
    recorder = Recorder(clock)
    turn = begun(recorder)
    for number in range(200):
        step(turn, clock)
        turn.add_note(
            NamedInterval(clock.now() - 0.5, clock.now(), PauseKind(f"step {number}", "named"))
        )
    turn.leave()
    assert recorder.log().pause_s == (0.5,) * 200
    assert len(recorder.pauses.kinds) == 50
    assert recorder.pauses.kinds[-1].name == "others"
    waiting = begun(recorder)
    for _ in range(2 * MOST_NOTES):
        waiting.add_note(NamedInterval(0.0, 1.0, CHECKPOINT))
    assert len(waiting._pause_notes) == MOST_NOTES


def profiled_steps(body) -> tuple[float | None, ...]:
    """Seconds of pause in each of three steps, of which ``body`` runs in the second."""
    recorder = Recorder()
    turn = begun(recorder)
    for number in range(3):
        turn.ask()
        turn.deliver({"samples": 1})
        if number == 1:
            body()
    turn.leave()
    return recorder.log().pause_s


def spend(seconds: float = 0.01) -> None:
    until = perf_counter() + seconds
    while perf_counter() < until:
        pass


def test_a_pause_is_as_long_as_its_body() -> None:
    def body() -> None:
        with pipeprof.pause("checkpoint"):
            spend(0.02)

    first, second, third = profiled_steps(body)
    assert first is third is None
    assert second >= 0.02


def test_exceptions_pass_through_and_end_the_pause() -> None:
    def fail() -> None:
        with pipeprof.pause(), pipeprof.pause("inner"):
            spend()
            raise KeyError

    def body() -> None:
        with pytest.raises(KeyError):
            fail()

    assert profiled_steps(body)[1] >= 0.01


def test_a_pause_in_another_thread_is_none_of_this_ones() -> None:
    def body() -> None:
        def save() -> None:
            with pipeprof.pause("save"):
                spend()

        thread = threading.Thread(target=save)
        thread.start()
        thread.join()

    assert profiled_steps(body) == ()


def test_a_pause_is_safe_where_nothing_is_profiled() -> None:
    with pipeprof.pause("checkpoint") as nothing:
        assert nothing is None
    with pipeprof.pause(3):  # whatever the name is
        pass


def test_a_pass_that_another_has_noted_keeps_nothing_of_its_loader() -> None:
    clock = FakeClock()
    train, val = Recorder(clock), Recorder(clock)
    turn = begun(train)
    step(turn, clock)
    inner = iterate(val, clock)
    source = weakref.ref(inner.source)
    inner.leave(exhausted=True)
    del inner
    gc.collect()
    assert list(turn._pause_notes), "its end is looked up when the step is over"
    assert source() is None
