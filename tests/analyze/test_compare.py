"""Two settings against each other, by trials and by pairs whose figures are given."""

from __future__ import annotations

from dataclasses import replace
from math import log

import pytest

from pipeprof.analyze.sweep.pairs import in_doubt, paired
from pipeprof.analyze.sweep.recommend import choose
from pipeprof.report.document.build import full_report
from tests.analyze.test_choose import SPEC, trial
from tests.sweep_samples import sample_sweep

URL = "data/csv"


def test_the_ratio_is_that_of_the_pairs_whatever_befalls_both() -> None:
    """The machine is four times as fast in the last pair as in the first."""
    found = paired(3, 1, [(110.0, 100.0), (216.0, 200.0), (330.0, 300.0), (440.0, 400.0)])
    assert (found.trial, found.against) == (3, 1)
    assert found.speed == pytest.approx(1.095, abs=0.001)
    low, high = found.speed_interval
    assert log(high / found.speed) == pytest.approx(log(found.speed / low))
    # Student's 97.5 % quantile of 3 degrees, 3.18, times the standard error of the log ratios
    assert log(high / low) / 2 == pytest.approx(3.18 * 0.00917 / 2, rel=0.02)
    assert found.difference == "faster"
    assert paired(1, 3, [(one, other) for other, one in found.samples_per_s]).difference == "slower"


def test_what_is_sure_but_slight_is_no_difference_and_neither_is_what_is_not_sure() -> None:
    assert paired(0, 1, [(102.0, 100.0), (102.1, 100.0)] * 4).difference == "none"
    assert paired(0, 1, [(140.0, 100.0), (80.0, 100.0), (150.0, 100.0), (90.0, 100.0)]
                  ).difference == "none"  # fmt: skip


def test_a_run_that_delivered_nothing_is_slower() -> None:
    assert paired(0, 1, [(0.0, 100.0)] * 4).difference == "slower"


def test_the_order_of_the_best_and_the_next_is_in_doubt_where_they_are_close() -> None:
    far = [trial(0, 5_000, 0.8, "starved"), trial(4, 10_000, 0.6, "starved")]
    assert in_doubt(far, URL) is None
    close = [*far, trial(2, 9_500, 0.6, "starved"), trial(8, 9_900, 0.6, "starved")]
    assert in_doubt(close, URL) == (1, 3), "against the fastest of the others"
    assert in_doubt(close, "data/parquet") is None
    assert in_doubt(close[:1], URL) is None
    assert in_doubt([close[1], close[1]], URL) is None, "the same setting twice"


def test_what_feeds_is_held_against_what_feeds() -> None:
    trials = [trial(2, 9_900, 0.06, "starved"), trial(4, 10_000, 0.04, "fed")]
    assert in_doubt(trials, URL) is None
    assert in_doubt([*trials, trial(8, 10_050, 0.03, "fed")], URL) == (1, 2)


def test_there_is_no_doubt_where_nothing_could_be_faster() -> None:
    """Four workers leave the accelerator waiting for 2 % of the time."""
    trials = [trial(4, 10_000, 0.02, "fed"), trial(8, 10_050, 0.01, "fed")]
    assert in_doubt(trials, URL) is None


@pytest.mark.parametrize(
    ("against", "workers"), [(1.00, 2), (0.90, 2), (1.10, 4)], ids=["equal", "slower", "faster"]
)
def test_the_better_in_pairs_is_advised_and_the_cheaper_where_they_are_equal(
    against: float, workers: int
) -> None:
    """By the trials alone, four workers are 5 % faster than two."""
    trials = [trial(2, 9_500, 0.6, "starved"), trial(4, 10_000, 0.6, "starved")]
    assert choose(trials, SPEC)[0].best_trial == 1
    pairs = paired(
        1, 0, [(against * each, each) for each in (9_000.0, 10_000.0, 11_000.0, 9_500.0)]
    )
    (advice,) = choose(trials, SPEC, {URL: pairs})
    assert trials[advice.best_trial].config.num_workers == workers
    assert advice.recommendation is not None
    assert advice.recommendation.proposed.startswith(f"{workers} workers")


@pytest.mark.parametrize(
    ("speed", "best", "said"),
    [(1.10, 1, "the one with the higher mean"), (1.02, 0, "the cheaper setting")],
)
def test_where_chance_hides_the_difference_the_mean_decides(
    speed: float, best: int, said: str
) -> None:
    trials = (trial(2, 9_900, 0.6, "starved"), trial(4, 10_000, 0.6, "starved"))
    pairs = {URL: paired(1, 0, [(chance * speed, 1.0) for chance in (0.8, 1.25, 0.7, 1 / 0.7)])}
    assert pairs[URL].difference == "none"
    advice = choose(trials, SPEC, pairs)
    assert advice[0].best_trial == best
    result = sample_sweep(
        spec=SPEC, trials=trials, planned=2, advice=advice, paired=pairs, headspace={}, noise={}
    )
    written = " ".join(str(full_report(result)).split())
    assert f"no difference can be shown, so {said} is recommended" in written


def test_of_two_batch_sizes_that_are_equal_the_one_that_was_best_stays() -> None:
    one = trial(2, 10_000, 0.6, "starved")
    other = replace(one, config=replace(one.config, batch_size=512), samples_per_s=9_900.0)
    pairs = paired(0, 1, [(100.0, 100.0), (101.0, 100.0), (100.0, 101.0), (100.0, 100.0)])
    assert choose([one, other], SPEC, {URL: pairs})[0].best_trial == 0
