"""A stretch ends when its rate is known, and a trial before it costs more than is left."""

from __future__ import annotations

from pipeprof.loaders.tune.search import MeasuredStretch, Search
from pipeprof.loaders.tune.stretch_clock import LEAST_S, Delivered, StretchClock
from pipeprof.loaders.tune.stretch_length import is_enough, least_s
from pipeprof.model import TunedSetting

OWN, TRIAL = TunedSetting(1, 2), TunedSetting(2, 2)


def search(budget_s: float) -> Search:
    """A search whose own setting gives 10 batches a second, and of whose budget 30 % may be lost
    in vain."""
    made = Search(OWN, lambda: budget_s / 0.3)
    made.last = MeasuredStretch(OWN, 100, 10.0, 5.0)
    return made


def timed(setting: TunedSetting, switching: int, switching_s: float, batches: int) -> StretchClock:
    """``setting`` under the clock, with as many batches a second as the own one."""
    clock = StretchClock(setting)
    now_s = 0.0
    for _ in range(1 + switching):
        clock.batch(Delivered(OWN, now_s, now_s))
        now_s += switching_s
    for _ in range(setting.outstanding + 1 + batches):
        clock.batch(Delivered(setting, now_s, now_s))
        now_s += 0.1
    return clock


def test_a_trial_ends_when_switching_alone_has_cost_what_is_left() -> None:
    quick, slow = (timed(TRIAL, 4, seconds, batches=3) for seconds in (0.1, 0.6))
    assert not is_enough(quick, search(budget_s=1.0), 10_000)
    assert not is_enough(slow, search(budget_s=10.0), 10_000)
    assert is_enough(slow, search(budget_s=1.0), 10_000)


def test_the_present_setting_is_measured_to_its_end() -> None:
    assert not is_enough(timed(OWN, 4, 0.6, batches=3), search(budget_s=1.0), 10_000)


def test_a_steady_stretch_ends_as_soon_as_it_may() -> None:
    assert is_enough(timed(TRIAL, 0, 0.0, batches=20), search(budget_s=1.0), 10_000)


def test_long_epochs_have_longer_stretches() -> None:
    assert least_s(search(1.0), 1000) == LEAST_S
    assert least_s(search(1.0), 20_000) == 4.0
    assert least_s(search(1.0), None) == LEAST_S
