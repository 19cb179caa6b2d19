"""The search against machines whose answer is known."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from random import Random

import pytest

from pipeprof.loaders.tune.search import Answer, Candidate, Measure, MeasuredStretch, Search
from pipeprof.model import TunedSetting

STEP_S = 0.010


def workers(count: int) -> TunedSetting:
    return TunedSetting(count, 2 if count else None)


class Machine:
    """Feeds a training step of 10 ms from workers that take 25 ms a batch, up to ``cores``."""

    def __init__(self, cores: int = 8, noise: float = 0.02, seed: int = 0) -> None:
        self._cores, self._noise, self._random = cores, noise, Random(seed)

    def batch_s(self, setting: TunedSetting) -> float:
        fetch_s = 0.025 / min(setting.num_workers, self._cores) if setting.num_workers else 0.025
        return max(STEP_S, fetch_s) if setting.num_workers else STEP_S + fetch_s

    def run(self, setting: TunedSetting) -> MeasuredStretch:
        if setting.num_workers > 6:
            return MeasuredStretch(setting, 0, 0.0, 0.0, error="Cannot allocate memory")
        seconds = 50 * self.batch_s(setting) * self._random.gauss(1, self._noise)
        return MeasuredStretch(setting, 50, seconds, max(0.0, seconds - 50 * STEP_S))


def searched(
    machine: Machine,
    start: TunedSetting,
    propose: Callable[[TunedSetting], Sequence[Candidate]],
    budget_s: float = 100.0,
) -> Search:
    search = Search(start, lambda: budget_s)
    steps = search.run()
    step = next(steps)
    with suppress(StopIteration):
        for _ in range(1000):
            answer: Answer
            if isinstance(step, Measure):
                answer = machine.run(step.setting)
            else:
                answer = propose(step.setting)
            step = steps.send(answer)
    assert search.state != "searching"
    return search


def one_more_than_one(setting: TunedSetting) -> Sequence[Candidate]:
    return [Candidate(workers(2))]


def one_more(setting: TunedSetting) -> Sequence[Candidate]:
    return [Candidate(workers(setting.num_workers + 1))]


def test_it_ends_when_the_accelerator_is_fed() -> None:
    search = searched(Machine(), workers(1), one_more)
    assert (search.state, search.current) == ("fed", workers(3))
    assert [attempt.kept for attempt in search.attempts] == [True, True]


def test_a_setting_that_feeds_is_left_alone() -> None:
    search = searched(Machine(), workers(4), one_more)
    assert (search.state, search.attempts) == ("fed", [])


def test_what_is_no_faster_is_hardly_ever_kept() -> None:
    """Each pair of stretches differs by 6 % here."""
    searches = [searched(Machine(cores=2, noise=0.04, seed=seed), workers(2), one_more)
                for seed in range(100)]  # fmt: skip
    assert {each.state for each in searches} == {"best"}
    assert sum(each.current != workers(2) for each in searches) <= 5


def test_a_small_gain_is_found_on_a_steady_machine() -> None:
    class ALittleFaster(Machine):
        def batch_s(self, setting: TunedSetting) -> float:
            return 0.030 * (0.98 if setting == workers(2) else 1)

    searches = [searched(ALittleFaster(noise=0.005, seed=seed), workers(1), one_more_than_one)
                for seed in range(20)]  # fmt: skip
    assert sum(each.current == workers(2) for each in searches) >= 15


def test_stretches_that_are_slower_by_chance_make_up_for_those_that_are_faster() -> None:
    class Unsteady(Machine):
        """The other setting is as fast in the mean: 20 % slower and 20 % faster in turns."""

        factors = itertools.cycle([1.2, 0.8])

        def batch_s(self, setting: TunedSetting) -> float:
            return 0.030 * (next(self.factors) if setting == workers(2) else 1)

        def run(self, setting: TunedSetting) -> MeasuredStretch:
            return replace(super().run(setting), rate_error=0.2)

    search = searched(Unsteady(noise=0.0), workers(1), lambda _: [Candidate(workers(2))])
    assert search.attempts[0].pairs == 20
    assert search.lost_s == pytest.approx(0.0, abs=1e-9)


def test_what_is_slower_is_not_kept_and_its_loss_is_counted() -> None:
    search = searched(Machine(), workers(2), lambda _: [Candidate(workers(1))])
    assert search.current == workers(2)
    assert search.lost_s == pytest.approx(50 * (0.025 - 0.0125), rel=0.2)


def test_what_switching_takes_longer_counts_as_lost() -> None:
    class SlowToSwitch(Machine):
        def run(self, setting: TunedSetting) -> MeasuredStretch:
            batch_s = self.batch_s(workers(2))
            return replace(super().run(setting), switching=4, switching_s=4 * batch_s + 0.5)

    search = searched(SlowToSwitch(noise=0.0), workers(2), lambda _: [Candidate(workers(1))])
    (tried,) = search.attempts
    assert tried.pairs == 1
    assert search.lost_s == pytest.approx(50 * (0.025 - 0.0125) + 2 * 0.5)


def test_what_was_found_pays_for_further_trials() -> None:
    """One trial in vain costs more than may be lost before anything faster was found."""
    slower = [Candidate(TunedSetting(1, prefetched)) for prefetched in (2, 4, 8)]
    in_vain = searched(Machine(noise=0.0), workers(2), lambda _: slower, budget_s=2.0)
    assert (in_vain.state, len(in_vain.attempts)) == ("budget", 1)

    def faster_first(setting: TunedSetting) -> Sequence[Candidate]:
        return [Candidate(TunedSetting(4, 2)), *slower]

    class StillStarved(Machine):
        def batch_s(self, setting: TunedSetting) -> float:
            return 0.1 / (1 + setting.num_workers)

    paid = searched(StillStarved(noise=0.0), workers(2), faster_first, budget_s=2.0)
    assert len(paid.attempts) > 2
    assert paid.lost_s < 2.0 + 50 * 0.05, "the last trial ends at the end of its stretch"


def test_a_setting_that_fails_is_reported_and_not_tried_again() -> None:
    search = searched(Machine(), workers(1), lambda _: [Candidate(workers(8))])
    (attempt,) = search.attempts
    assert attempt.error == "Cannot allocate memory"
    assert (search.state, search.current) == ("best", workers(1))


def test_a_spent_budget_ends_it() -> None:
    slower = [Candidate(workers(0)), Candidate(TunedSetting(1, 1)), Candidate(TunedSetting(1, 9))]
    search = searched(Machine(), workers(2), lambda _: slower, budget_s=0.1)
    assert (search.state, len(search.attempts)) == ("budget", 1)


def test_a_candidate_that_is_not_predicted_to_be_faster_is_not_tried() -> None:
    search = searched(Machine(), workers(2), lambda _: [Candidate(workers(3), 80.0)])
    assert (search.state, search.attempts) == ("best", [])


def test_candidates_are_asked_for_again_only_after_a_change() -> None:
    asked = list[TunedSetting]()

    def propose(setting: TunedSetting) -> Sequence[Candidate]:
        asked.append(setting)
        return [Candidate(workers(1)), Candidate(workers(0)), Candidate(workers(3))]

    search = searched(Machine(cores=3), workers(2), propose)
    assert [attempt.kept for attempt in search.attempts][:3] == [False, False, True]
    assert asked == [workers(2), workers(3)][: len(asked)]


def test_a_prediction_that_was_too_fast_makes_the_others_slower() -> None:
    """Two workers take 12.5 ms a batch, and more are no faster on two cores."""
    too_fast = [Candidate(workers(3), 120.0), Candidate(workers(4), 115.0)]
    search = searched(Machine(cores=2), workers(2), lambda _: too_fast)
    assert [attempt.setting for attempt in search.attempts] == [workers(3)]


def test_a_prediction_is_compared_with_what_the_same_batches_gave() -> None:
    """The machine may have become slower or faster since."""
    for predicted, tried in {44.0: [workers(3)], 40.0: []}.items():
        candidate = Candidate(workers(3), predicted, against=40.0)
        search = searched(Machine(), workers(2), lambda _, one=candidate: [one])
        assert [attempt.setting for attempt in search.attempts] == tried
        assert all(attempt.predicted == 1.1 for attempt in search.attempts)


def test_an_exploring_candidate_is_tried_where_it_is_predicted_to_be_as_fast() -> None:
    def explore(predicted: float) -> Sequence[TunedSetting]:
        candidate = Candidate(workers(4), predicted, explores=True)
        search = searched(Machine(), workers(2), lambda _: [candidate])
        return [attempt.setting for attempt in search.attempts]

    assert explore(79.0) == [workers(4)]  # two workers give 80
    assert explore(70.0) == []


class BesideAnother(Machine):
    """The loop waits for the batches of another loader, too. They come every 25 ms, and
    ``slowed_ms`` later for each worker beyond the first."""

    slowed_ms = 0.0

    def run(self, setting: TunedSetting) -> MeasuredStretch:
        alone = super().run(setting)
        other_s = 0.025 + self.slowed_ms / 1000 * (setting.num_workers - 1)
        others_s = max(0.0, 50 * other_s - alone.seconds)
        return replace(alone, seconds=alone.seconds + others_s, others_s=others_s)


def test_where_the_loop_then_waits_for_another_loader_the_setting_is_kept() -> None:
    search = searched(BesideAnother(noise=0.005), workers(1), one_more)
    assert (search.state, search.current) == ("fed", workers(3))
    assert [round(each.with_others or 0, 1) for each in search.attempts] == [1.0, 1.0]


def test_what_slows_another_loader_down_is_not_kept() -> None:
    class SharesItsCores(BesideAnother):
        slowed_ms = 2.0

    search = searched(SharesItsCores(noise=0.005), workers(1), one_more)
    (tried,) = search.attempts
    assert (search.state, tried.kept) == ("best", False)
    assert tried.with_others == pytest.approx(25 / 27, rel=0.02)
