"""Intervals hold what they promise, on data whose truth is known."""

import numpy as np
import pytest

from pipeprof.analyze.profile.intervals import (
    fit_line,
    quantile_places,
    ratio_interval,
    spread,
    standard_error,
    student_t,
)


def coverage(make, truth, runs=200):
    """How often the interval of ``make(random)`` holds ``truth``."""
    held = 0
    for seed in range(runs):
        top, bottom = make(np.random.default_rng(seed))
        low, high = ratio_interval(top, bottom)
        held += low <= truth <= high
    return held / runs


def test_it_holds_the_truth_about_as_often_as_it_says():
    def independent(random):
        wait = random.exponential(0.01, 300)
        return wait, wait + 0.01

    assert coverage(independent, truth=0.5) >= 0.9


def test_bursts_widen_it():
    """Fifty batches wait for the same slow read: their waits are no fifty observations."""

    def bursty(random):
        wait = np.repeat(random.exponential(0.01, 40), 10)
        return wait, wait + 0.01

    wait, cycle = bursty(np.random.default_rng(0))
    shuffled = np.random.default_rng(1).permutation(400)
    low, high = ratio_interval(wait, cycle)
    naive_low, naive_high = ratio_interval(wait[shuffled], cycle[shuffled])
    assert high - low > 1.5 * (naive_high - naive_low)
    assert coverage(bursty, truth=0.5) >= 0.85


def test_the_same_data_give_the_same_interval():
    data = np.random.default_rng(3).random(50)
    assert ratio_interval(data, data + 1) == ratio_interval(data, data + 1)


def test_few_values():
    assert ratio_interval(np.zeros(0), np.zeros(0)) == (0.0, float("inf"))
    assert ratio_interval(np.array([1.0]), np.array([2.0])) == (0.5, 0.5)


@pytest.mark.parametrize(
    ("degrees", "quantile"),
    [(1, 12.7062), (2, 4.3027), (3, 3.1824), (4, 2.7764), (5, 2.5706), (6, 2.4469), (9, 2.2622),
     (10, 2.2281), (15, 2.1314), (30, 2.0423), (60, 2.0003), (120, 1.9799), (10_000, 1.9602)],
)  # fmt: skip
def test_students_quantile_is_that_of_the_tables(degrees, quantile):
    assert student_t(degrees) == pytest.approx(quantile, abs=5e-4)


def test_spread_is_of_five_windows():
    seconds = np.ones(50)
    samples = np.repeat([10.0, 10.0, 11.0, 12.0, 10.0], 10)
    assert spread(samples, seconds) == pytest.approx(0.2)
    assert spread(samples[:9], seconds[:9]) == 0.0


def test_a_line_has_its_slope_and_says_how_sure_it_is():
    along = np.arange(5.0)
    assert fit_line(along, 2 * along + 1) == pytest.approx((2.0, 1.0))
    assert fit_line(along, np.array([1.0, -1.0, 1.0, -1.0, 1.0])) == pytest.approx((0.0, 0.0))
    assert fit_line(np.ones(5), along) == (0.0, 0.0)


@pytest.mark.parametrize("seed", range(5))
def test_of_values_in_bins_quantiles_lie_in_the_bin_of_their_rank(seed):
    values = np.random.default_rng(seed).integers(0, 6, 100)
    shares = (0.0, 0.05, 0.5, 0.99, 1.0)
    places = quantile_places(np.bincount(values), *shares)
    assert places.tolist() == [np.sort(values)[int(share * 99)] for share in shares]


def test_the_standard_error_of_a_mean_is_from_the_sample_variance():
    assert standard_error(np.array([1.0, 2.0, 3.0])) == pytest.approx((1 / 3) ** 0.5)


def test_the_standard_error_is_what_means_of_few_values_differ_by():
    """Of normal values with a spread of 1, the mean of three has a variance of 1/3."""
    three = np.random.default_rng(0).normal(size=(20_000, 3))
    assert three.mean(axis=1).var() == pytest.approx(1 / 3, rel=0.03)
    assert np.mean([standard_error(each) ** 2 for each in three]) == pytest.approx(1 / 3, rel=0.03)


def test_one_value_tells_nothing_of_its_error():
    assert standard_error(np.array([1.0])) == float("inf")
