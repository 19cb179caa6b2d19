"""The mean of a figure that is known of a few batches, by another one known of all."""

from __future__ import annotations

from math import isnan

import numpy as np
import pytest

from pipeprof.analyze.profile.covariate_mean import CovariateMean


def mean_of(y: list[float], x: list[float], at: float) -> float:
    mean = CovariateMean()
    mean.add(np.array(y), np.array(x))
    return mean.at(at)


def test_of_one_slow_batch_that_only_computed_it_follows_that_others_are_faster() -> None:
    assert mean_of([0.2], [0.2], at=0.1) == pytest.approx(0.1)


def test_batches_that_wait_for_different_times_compute_as_much() -> None:
    waits = [0.010, 0.030, 0.100, 0.020]
    assert mean_of([0.005] * 4, waits, at=0.020) == pytest.approx(0.005)


def test_batches_that_compute_for_different_times_compute_less_on_average() -> None:
    computed = [0.010, 0.030, 0.100, 0.020]
    assert mean_of(computed, [each + 0.001 for each in computed], at=0.021) == pytest.approx(0.020)


def test_native_threads_may_compute_for_longer_than_a_batch_takes() -> None:
    assert mean_of([0.4, 0.6], [0.1, 0.2], at=0.1) == pytest.approx(1 / 3)


def test_unknown_values_count_for_nothing() -> None:
    assert isnan(mean_of([], [], at=1.0))
    assert mean_of([0.2, float("nan")], [0.2, 9.0], at=0.1) == pytest.approx(0.1)


def test_the_error_is_smaller_than_that_of_the_plain_mean() -> None:
    rng, plain, ours = np.random.default_rng(0), [], []
    for _ in range(200):
        made = rng.lognormal(-5, 0.5, 1000)
        cpu = 0.7 * made + rng.normal(0.001, 0.0002, 1000)
        mean = CovariateMean()
        mean.add(cpu[:10], made[:10])
        ours.append(mean.at(float(made.mean())) / cpu.mean() - 1)
        plain.append(cpu[:10].mean() / cpu.mean() - 1)
    assert np.std(ours) < np.std(plain) / 2
