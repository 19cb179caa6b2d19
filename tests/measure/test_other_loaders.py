"""Of several loaders in one loop, each knows how long its steps wait for the others: exact."""

import threading

from pipeprof.measure.clock import FakeClock
from pipeprof.measure.loader_pass import Pass
from pipeprof.measure.recorder import Recorder
from pipeprof.model import OtherLoader
from tests.analyze.pipelines import begun


def take(turn: Pass, clock: FakeClock, wait_s: float) -> None:
    turn.ask()
    clock.sleep(wait_s)
    turn.deliver({"samples": 1, "received_s": clock.now() - 0.25})


def zipped(clock: FakeClock, batches: int = 4) -> tuple[Recorder, Recorder]:
    """Each step of 2 s takes a batch of both, of 1 and 0.5 s."""
    one, other = Recorder(clock, name="one"), Recorder(clock, name="other")
    first, second = begun(one), begun(other)
    for _ in range(batches):
        take(first, clock, 1.0)
        take(second, clock, 0.5)
        clock.sleep(2.0)
    first.leave()
    second.leave()
    return one, other


def test_the_wait_for_another_loader_is_told_from_the_step() -> None:
    one, other = zipped(FakeClock(10.0))
    assert one.log().others_s == (0.5,) * 4
    assert other.log().others_s == (1.0, 1.0, 1.0, 0.0), "the last step is followed by no batch"
    assert one.other_loaders() == (OtherLoader("other", None),)


def test_what_receiving_another_s_batch_takes_would_remain() -> None:
    one, other = zipped(FakeClock(10.0))
    assert one.log().others_received_s == (0.25,) * 4
    assert other.log().others_received_s == (0.25, 0.25, 0.25, 0.0)


def test_what_is_iterated_in_a_pause_is_no_part_of_the_step() -> None:
    clock = FakeClock()
    train, validation = Recorder(clock, name="train"), Recorder(clock, name="validation")
    turn = begun(train)
    for number in range(6):
        take(turn, clock, 0.5)
        clock.sleep(1.0)
        if number == 3:
            evaluated = begun(validation)
            take(evaluated, clock, 3.0)
            evaluated.leave(exhausted=True)
    turn.leave()
    assert train.log().pause_s[3] == 3.0
    assert train.log().others_s == (0.0,) * 6
    assert train.other_loaders() == ()


def test_loaders_of_another_thread_or_another_clock_do_not_count() -> None:
    clock = FakeClock()
    lone = Recorder(clock, name="lone")
    turn = begun(lone)
    take(turn, clock, 1.0)
    elsewhere = threading.Thread(target=zipped, args=(clock,))
    elsewhere.start()
    elsewhere.join()
    recorders = zipped(FakeClock())
    turn.leave()
    assert lone.log().others_s == ()
    assert all(each.other_loaders() for each in recorders)
