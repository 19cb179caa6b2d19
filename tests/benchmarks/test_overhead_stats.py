"""What the overhead benchmark concludes, on costs that are known."""

import numpy as np
import pytest

from benchmarks.overhead_stats import (
    ENOUGH,
    Estimate,
    added,
    estimate,
    judge,
    median,
    mixed,
    trimmed,
)


def sessions(random, cost, noise=0.02, luck=0.003, shape=(12, 10)):
    """A plain and a profiled series: each session has its own luck, each round its own noise."""
    drift = 1 + 0.2 * random.random(shape)
    bias = luck * random.standard_normal((shape[0], 1))
    plain = drift * (1 + noise * random.standard_normal(shape))
    return plain, drift * (1 + cost + bias + noise * random.standard_normal(shape))


def test_a_known_cost_is_found():
    plain, profiled = sessions(np.random.default_rng(0), cost=0.05)
    found = added(profiled, plain, relative=True)
    assert found.middle == pytest.approx(0.05, abs=0.01)
    assert found.low <= 0.05 <= found.high


def test_the_interval_holds_the_truth_about_as_often_as_it_says():
    held = 0
    for seed in range(100):
        plain, profiled = sessions(np.random.default_rng(seed), cost=0.01, luck=0.01)
        found = added(profiled, plain, relative=True)
        held += found.low <= 0.01 <= found.high
    assert held >= 85


def test_in_seconds_it_is_a_difference_and_not_a_share():
    plain, profiled = np.full((8, 5), 20e-6), np.full((8, 5), 26e-6)
    assert added(profiled, plain, relative=False).middle == pytest.approx(6e-6)
    assert added(profiled, plain, relative=True).middle == pytest.approx(0.3)


def test_two_plain_series_count_as_their_mean():
    low, high, profiled = np.full((8, 5), 1.0), np.full((8, 5), 4.0), np.full((8, 5), 2.2)
    assert added(profiled, low, high, relative=True).middle == pytest.approx(0.1)
    assert added(profiled, low, high, relative=False).middle == pytest.approx(-0.3)


def test_noise_alone_costs_nothing():
    random = np.random.default_rng(0)
    one, two, three, four = (np.exp(0.3 * random.standard_normal((200, 50))) for _ in range(4))
    found = added(mixed(0.2, one, two, relative=True), three, four, relative=True)
    assert found.middle == pytest.approx(0, abs=0.01)


def test_of_two_modes_each_counts_as_much_as_there_is_of_it():
    often, rarely = np.full((8, 5), 2.0), np.full((8, 5), 8.0)
    assert mixed(0.25, rarely, often, relative=False)[0, 0] == pytest.approx(3.5)
    assert mixed(0.5, rarely, often, relative=True)[0, 0] == pytest.approx(4.0)


def test_a_disturbed_round_says_nothing():
    differences = np.full((8, 50), 0.004)
    differences[0, 0] = 5.0
    for middle in (median, trimmed):
        found = estimate(differences, middle=middle)
        assert (found.middle, found.low, found.high) == pytest.approx((0.004, 0.004, 0.004))


def test_what_happens_now_and_then_counts():
    every_tenth = np.full((8, 50), 0.0)
    every_tenth[:, ::10] = 0.01
    every_tenth += np.random.default_rng(0).normal(0, 0.05, (8, 50))
    assert trimmed(every_tenth.ravel()) == pytest.approx(every_tenth.mean(), abs=0.001)


def test_of_few_sessions_the_interval_is_everything():
    found = estimate(np.full((ENOUGH - 1, 100), 0.001))
    assert (found.low, found.high) == (float("-inf"), float("inf"))


def test_the_same_rounds_give_the_same_interval():
    differences = np.random.default_rng(1).random((9, 7))
    assert estimate(differences) == estimate(differences)


@pytest.mark.parametrize(
    ("cost", "control", "verdict"),
    [
        ((0.002, 0.009), (-0.004, 0.004), "met"),
        ((0.002, 0.011), (-0.004, 0.004), "MISSED"),
        ((-0.030, -0.020), (-0.004, 0.004), "met"),
        ((0.002, 0.009), (-0.004, 0.006), "not judged"),
        ((0.012, 0.300), (-0.006, 0.001), "not judged"),
        ((0.017, 0.300), (-0.006, 0.001), "MISSED"),
        ((0.002, 0.009), (float("-inf"), float("inf")), "not judged"),
    ],
)
def test_the_bar_is_held_against_the_upper_end_where_the_control_allows(cost, control, verdict):
    judged = judge(Estimate(0, *cost), Estimate(0, *control), most=0.01, quiet=0.005)
    assert judged == verdict
