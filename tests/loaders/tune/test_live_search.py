"""The search on batches whose times are known exactly."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, cast

import pytest

from pipeprof.loaders.instrument.profiler import LoaderProfiler
from pipeprof.loaders.tune.agreement import Terms
from pipeprof.loaders.tune.drift import MOST_REPEATS
from pipeprof.loaders.tune.live_search import LiveSearch
from pipeprof.loaders.tune.ranks import OneRank
from pipeprof.loaders.tune.search import Candidate, Search
from pipeprof.loaders.tune.stretch_clock import Delivered
from pipeprof.loaders.tune.training_steps import TrainingSteps
from pipeprof.model import Recording, TunedSetting

ONE, TWO = TunedSetting(1, 2), TunedSetting(2, 2)


class Training:
    """Trains with steps of 10 ms. A batch takes so long as ``batch_s`` says, by setting."""

    within_epochs = True

    def __init__(
        self, *candidates: TunedSetting, epoch_batches: int = 10**6, budget: float = 1e9
    ) -> None:
        self.users_choice: list[Candidate] = []
        self.batch_s = {ONE: 0.03, TWO: 0.03}
        self.setting = ONE
        self.failing: set[TunedSetting] = set()
        self.events: list[str] = []
        self._candidates = candidates
        self._now_s = 0.0
        self.validates_every, self._batches = 0, 0
        """A validation of 20 s after so many batches; 0 is never."""
        self.slow_every = 0
        """So many batches after a slow one, which takes 8 times as long, comes the next."""
        self._training_steps = TrainingSteps()
        self.search = Search(ONE, lambda: budget * self.live.paying_s)
        terms = Terms("images", ONE, epoch_batches, 2, "here")
        self.live = LiveSearch(self.search, self, self.propose, OneRank, terms)
        self._steps = self.live.run()
        next(self._steps)

    def propose(
        self, recording: Recording, now: TunedSetting
    ) -> Callable[[], Sequence[Candidate] | None]:
        return lambda: [*self.users_choice, *map(Candidate, self._candidates)]

    def use(self, setting: TunedSetting) -> None:
        if setting in self.failing:
            raise OSError(12, "Cannot allocate memory")
        self.setting = setting
        self._now_s += 0.25

    def in_use(self, setting: TunedSetting) -> bool:
        return self.setting == setting

    def renew(self, setting: TunedSetting) -> None:
        self.events.append("renewed")

    def why_failed(self, setting: TunedSetting) -> str | None:
        return None

    def profiler_of(self, setting: TunedSetting) -> LoaderProfiler:
        made_every_s = self.batch_s[setting]

        class Profiler:
            def made_every_s(self) -> float:
                return made_every_s

            def recording(self, with_overhead: bool = True) -> Any:
                return None

        return cast(LoaderProfiler, Profiler())

    def ended(self) -> None:
        self.events.append(self.search.state)

    def run(self, seconds: float) -> None:
        end_s = self._now_s + seconds
        while self._now_s < end_s:
            asked_s = self._now_s + 0.01
            ready_s = self._now_s + self.batch_s[self.setting]
            self._batches += 1
            if self.slow_every and self._batches % self.slow_every == 0:
                ready_s += 7 * self.batch_s[self.setting]
            if self.validates_every and self._batches % self.validates_every == 0:
                asked_s += 20
            self._now_s = max(asked_s, ready_s)
            paused = self._training_steps.paused(asked_s)
            self.deliver(Delivered(self.setting, asked_s, self._now_s, paused))
            self._training_steps.begin(self._now_s)

    def deliver(self, batch: Delivered) -> None:
        with suppress(StopIteration):  # the search has ended for good
            self._steps.send(batch)


def run_in_one_loop(loaders: Sequence[Training], seconds: float) -> None:
    """Each step of 10 ms takes a batch of each loader."""
    waited_s, came_s = [0.0 for _ in loaders], [0.0 for _ in loaders]
    now_s = 0.0
    while now_s < seconds:
        now_s += 0.01
        for number, each in enumerate(loaders):
            others_s = sum(waited_s) - waited_s[number]
            asked_s, now_s = now_s, max(now_s, came_s[number] + each.batch_s[each.setting])
            waited_s[number] = now_s - asked_s
            came_s[number] = now_s
            each.deliver(Delivered(each.setting, asked_s, now_s, others_s=others_s))


def test_the_faster_setting_is_kept() -> None:
    training = Training(TWO)
    training.batch_s[TWO] = 0.015
    training.run(400)
    (tried,) = training.search.attempts
    assert tried.kept
    assert round(tried.ratio or 0, 3) == 2.0
    assert training.events == ["best"]


def test_each_switch_counts_as_lost() -> None:
    training = Training(TWO)
    training.run(400)
    (tried,) = training.search.attempts
    assert not tried.kept
    # to the other setting and back, for every two pairs of stretches
    switches = 2 * (tried.pairs // 2 + tried.pairs % 2)
    assert training.search.lost_s == pytest.approx(0.25 * switches)


def test_what_only_the_user_can_choose_is_said_and_not_tried() -> None:
    training = Training(TWO)
    training.users_choice = [Candidate(TunedSetting(0, None), 1234.5, is_users_choice=True)]
    training.run(400)
    assert [each.setting for each in training.search.attempts] == [TWO]
    note = "num_workers=0 would give about 1,234 batches/s; only you can choose it"
    assert training.live.users_choice == note


def test_where_batches_vary_much_a_stretch_is_longer() -> None:
    steady, varied = Training(epoch_batches=2_000), Training(epoch_batches=2_000)
    varied.slow_every = 13
    for training in (steady, varied):
        training.run(30)
    assert steady.search.first
    assert varied.search.first
    assert steady.search.first.seconds < 0.02 * 60, "as long as a stretch must be"
    assert varied.search.first.seconds >= 0.03 * 60, "the most of an epoch of a minute"


@pytest.mark.slow
def test_validation_changes_nothing_of_what_a_search_finds() -> None:
    """Counted as steps, these pauses would make a starved accelerator look fed."""
    found = []
    for every in (0, 40):
        training = Training(TWO)
        training.batch_s[TWO] = 0.015
        training.validates_every = every
        training.run(20_000)
        (tried,) = training.search.attempts
        assert training.search.first
        found.append((tried.kept, round(tried.ratio or 0, 3), training.search.first.fed))
        assert training.live.repeats == 0
    assert found[0] == found[1]


def test_a_setting_that_cannot_start_is_not_kept() -> None:
    training = Training(TWO)
    training.failing.add(TWO)
    training.run(400)
    (tried,) = training.search.attempts
    assert tried.error == "OSError: Cannot allocate memory"
    assert training.setting == ONE


def test_a_search_is_repeated_when_training_has_paid_for_the_last_one() -> None:
    training = Training(TWO, epoch_batches=2_000, budget=0.05)
    training.batch_s[TWO] = 0.06
    training.run(40)
    lost_s = training.search.lost_s
    assert lost_s >= 0.3 * 0.05 * 60, "all that may be lost in an epoch of a minute"
    training.batch_s = {ONE: 0.06, TWO: 0.12}
    training.run(20)
    assert training.live.repeats == 0
    training.run(lost_s / (0.3 * 0.05) + 30)
    assert training.live.repeats == 1


def test_a_loader_that_becomes_slower_is_searched_again() -> None:
    training = Training(TWO)
    training.batch_s = {ONE: 0.01, TWO: 0.01}
    training.run(400)
    assert training.events == ["fed"]
    training.batch_s = {ONE: 0.03, TWO: 0.015}
    training.run(400)
    assert training.events == ["fed", "renewed", "best"]
    assert training.search.current == TWO
    assert training.live.repeats == 1


def test_a_loader_that_stays_as_it_is_is_not_searched_again() -> None:
    training = Training(TWO)
    training.run(4000)
    assert training.events == ["best"]


def test_a_search_is_repeated_a_few_times_at_most() -> None:
    training = Training()
    for slower in range(6):
        training.batch_s[ONE] = 0.02 * 1.5**slower
        training.run(400)
    assert training.events.count("renewed") == MOST_REPEATS


def test_an_epoch_that_ends_within_a_trial_is_continued_by_the_next() -> None:
    training = Training(TWO)
    training.batch_s[TWO] = 0.015
    training.run(30)
    assert training.setting == TWO
    training.setting = ONE  # the next epoch begins with the present setting
    training._steps.send(None)
    training.run(400)
    (tried,) = training.search.attempts
    assert tried.kept


def test_two_loaders_of_one_loop_get_faster_one_after_the_other() -> None:
    """With the first one alone made faster, the loop would only wait for the second."""
    loaders = Training(TWO), Training(TWO)
    for each in loaders:
        each.batch_s[TWO] = 0.015
    run_in_one_loop(loaders, 400)
    assert [each.search.current for each in loaders] == [TWO, TWO]
    (tried,) = loaders[0].search.attempts
    assert (round(tried.with_others or 0, 1), tried.kept) == (1.0, True)
