"""What runs of one setting differ by, by trials and repetitions whose truth is known."""

from __future__ import annotations

from dataclasses import replace
from math import exp, log

import numpy as np
import pytest

from pipeprof.analyze.compare.ratios import ratio
from pipeprof.analyze.sweep.noise import Noise, noise_of, repeated, to_repeat, widened
from pipeprof.model import RunNoise, Trial
from tests.analyze.test_choose import trial

URL = "data/csv"


def measured(workers: int, samples_per_s: float, own: float = 0.01, drift: float = 0.0) -> Trial:
    """``own``: half of the interval of that very run, relatively."""
    found = trial(workers, samples_per_s, 0.6, "starved")
    interval = samples_per_s * exp(-own), samples_per_s * exp(own)
    return replace(found, interval=interval, own_interval=interval, drift=drift)


@pytest.mark.parametrize("sd", [0.02, 0.05, 0.15])
def test_the_next_run_lies_in_the_interval_as_often_as_it_says(sd: float) -> None:
    """Runs differ by ``sd`` where stretches of them do, or by twice that, or by half."""
    chance, held, rounds = np.random.default_rng(1), 0, 2000
    for _ in range(rounds):
        between = sd * chance.choice([0.5, 1.0, 1.0, 2.0])
        first, again, now, after = np.exp(chance.normal(0, between, 4))
        trials = [measured(workers, 1000 * now, drift=sd) for workers in (1, 2, 4)]
        noise = noise_of(trials, RunNoise(0, 1000 * first, 1000 * again))
        low, high = noise.widen(1000 * now, (1000 * now,) * 2)
        held += low <= 1000 * after <= high
    assert 0.93 <= held / rounds <= 0.99, "surest where the least, which is 0.011, matters"


def test_a_repetition_that_differs_widens_and_one_that_does_not_narrows() -> None:
    trials = [measured(workers, 1000.0, drift=0.05) for workers in (1, 2, 4)]
    widths = [
        noise_of(trials, found).half_width
        for found in (RunNoise(0, 1000, 1000), None, RunNoise(0, 1000, 700))
    ]
    assert widths == sorted(widths)
    alone = Noise.of([0.05])
    assert (alone.degrees, alone.variance) == (2, pytest.approx(0.05**2 + 0.011**2))
    assert Noise.of([0.05], [(0.2, 0.0)]).variance == pytest.approx(
        (2 * alone.variance + 0.2**2 / 2) / 3
    )
    assert Noise.of([0.05], [(0.2, 0.02)]).variance == pytest.approx(2 / 3 * alone.variance), (
        "all by the chance of batches"
    )


def test_intervals_of_a_data_set_are_widened_from_what_they_were_of_the_run_itself() -> None:
    other = replace(measured(2, 500.0), url="data/parquet")
    trials = (measured(1, 1000.0, own=0.02), other)
    noise = Noise(0.03**2, 5)
    once = widened(trials, URL, noise)
    assert widened(once, URL, noise) == once, "not again and again"
    assert once[1] == other
    half = log(once[0].interval[1] / 1000)
    assert half == pytest.approx(np.hypot(0.02 * 2**0.5, noise.half_width))
    assert log(1000 / once[0].interval[0]) == pytest.approx(half)
    assert ratio(once[0], once[1], 0.1) == ratio(trials[0], trials[1], 0.1), (
        "of the runs themselves"
    )
    older = replace(trials[0], own_interval=None)
    assert widened([older], URL, noise) == once[:1], "of a sweep that knew no other interval"
    nothing = measured(1, 0.0)
    assert widened([nothing], URL, noise) == (nothing,)


def test_of_the_earlier_half_the_fastest_trial_is_repeated() -> None:
    rates = (300.0, 500.0, 400.0, 900.0, 800.0)
    trials = [measured(number, rate) for number, rate in enumerate(rates)]
    assert to_repeat(trials, URL) == 1
    assert to_repeat(trials[:3], URL) == 1
    assert to_repeat(trials[:2], URL) == 0
    assert to_repeat(trials[:1], URL) is None, "nothing would lie between the two"
    assert to_repeat(trials, "data/parquet") is None


def test_settings_closer_than_the_noise_are_not_told_apart_and_longer_trials_may() -> None:
    def found(second: float, own: float, drift: float) -> RunNoise:
        rates = (500.0, 1000.0, second)
        trials = [measured(workers, rate, own, drift) for workers, rate in enumerate(rates)]
        return repeated(trials, 1, 1000.0, trial_s=3.0)

    far = found(1200.0, own=0.01, drift=0.0)
    assert far.settled
    assert far.needed_trial_s is None
    assert far.apart == pytest.approx(log(1.2))
    by_chance = found(1060.0, own=0.06, drift=0.0)
    assert not by_chance.settled
    assert by_chance.needed_trial_s is not None
    longer = 0.06 * (3.0 / by_chance.needed_trial_s) ** 0.5
    assert found(1060.0, own=longer, drift=0.0).half_width == pytest.approx(log(1.06), rel=0.01)
    by_drift = found(1060.0, own=0.01, drift=0.05)
    assert not by_drift.settled
    assert by_drift.needed_trial_s is None, "what lasts no length averages out"
    assert found(1001.0, own=0.001, drift=0.0).apart == pytest.approx(log(1.03)), "less is none"
