"""Pauses of the training loop are distinguished from its steps: they say nothing of a setting."""

from __future__ import annotations

import pytest

import pipeprof
from pipeprof.loaders.tune.training_steps import TrainingSteps
from pipeprof.measure.pauses import Interval, NamedInterval, PauseNote, listen
from pipeprof.model import PauseKind


class Loop:
    """A training loop on a clock of its own."""

    def __init__(self) -> None:
        self.steps, self.now_s = TrainingSteps(), 0.0

    def step(self, seconds: float, named_s: float = 0.0) -> bool:
        """Take a step that ends with a pause of ``named_s``; return whether it counts as one."""
        self.steps.begin(self.now_s)
        self.now_s += seconds
        if named_s:
            kind = PauseKind("validation", "named")
            self.steps.add_note(NamedInterval(self.now_s - named_s, self.now_s, kind))
        return self.steps.paused(self.now_s)

    def ordinary(self, count: int = 30, seconds: float = 0.01) -> None:
        for _ in range(count):
            assert not self.step(seconds)


def test_a_named_pause_is_one_and_brief_logging_is_none() -> None:
    loop = Loop()
    loop.ordinary()
    assert loop.step(0.05, named_s=0.04)
    assert loop.steps.by_length is None
    assert not loop.step(0.012, named_s=0.002)


def test_steps_may_be_looked_at_when_the_next_ones_have_ended() -> None:
    loop = Loop()
    loop.ordinary()
    first_s = loop.now_s
    second_s, third_s = first_s + 0.01, first_s + 0.07
    kind = PauseKind("validation", "named")
    loop.steps.add_note(NamedInterval(second_s + 0.01, third_s, kind))
    loop.steps.begin(first_s)
    assert not loop.steps.paused(second_s)
    loop.steps.begin(second_s)
    assert loop.steps.paused(third_s)


def test_a_pause_without_a_name_must_be_long_and_rare() -> None:
    loop = Loop()
    loop.ordinary()
    assert not loop.step(0.09), "below a tenth of a second"
    assert loop.step(1.0)
    loop.ordinary(100)
    assert loop.step(1.0), "every hundredth step"


@pytest.mark.parametrize("every", [2, 8, 20])
def test_slow_steps_that_come_again_and_again_are_training(every: int) -> None:
    loop = Loop()
    found = [loop.step(0.2 if number % every == every - 1 else 0.01) for number in range(1000)]
    assert sum(found) <= 2, "the first two at most"


def test_slow_first_steps_are_no_pauses() -> None:
    loop = Loop()
    assert not any([loop.step(5.0), loop.step(3.0), *(loop.step(0.01) for _ in range(30))])


def test_an_epoch_begins_without_a_step() -> None:
    loop = Loop()
    loop.ordinary()
    loop.steps.begin(None)
    assert not loop.steps.paused(loop.now_s + 100)


def test_a_note_that_fails_is_no_pause() -> None:
    class Broken(Interval):
        def pause_within(self, begin_s: float, end_s: float) -> Interval | None:
            raise RuntimeError("broken")

    loop = Loop()
    loop.ordinary()
    loop.steps.add_note(Broken(loop.now_s, loop.now_s + 1, PauseKind("broken", "named")))
    assert not loop.step(0.01)


def test_pauses_of_its_thread_are_announced_once() -> None:
    notes: list[PauseNote] = []

    class Noting(TrainingSteps):
        def add_note(self, note: PauseNote) -> None:
            notes.append(note)

    steps = Noting()
    listen(steps)
    listen(steps)  # as in the next epoch
    with pipeprof.pause("checkpoint"):
        pass
    assert len(notes) == 1


def test_where_a_pause_without_a_name_lies_is_known() -> None:
    """It lasts from the end of an ordinary step on."""
    loop = Loop()
    loop.ordinary(30, 0.01)
    begin_s = loop.now_s
    assert loop.step(0.4)
    assert loop.steps.by_length == pytest.approx((begin_s + 0.01, begin_s + 0.4))
    assert not loop.step(0.01)
    assert loop.steps.by_length is None
