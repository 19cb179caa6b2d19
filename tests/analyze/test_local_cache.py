"""What a local cache is worth, against counted epochs, a simulated cache and known rates."""

from __future__ import annotations

import math
from collections import OrderedDict
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pipeprof
from pipeprof.analyze.sweep.local_cache import (
    CacheRound,
    break_even,
    evaluate_cache,
    evicting_hits,
    least_share,
    with_share,
)
from pipeprof.model import CachePass, LocalCache
from pipeprof.report.document.build import full_report
from tests.sweep_samples import sample_sweep


def evaluated(rounds: list[CacheRound], **changes: Any) -> LocalCache:
    about = {"folder": "/nvme", "limit_bytes": None, "splits": 20, "cached_bytes": 100,
             "dataset_bytes": 1000, **changes}  # fmt: skip
    return evaluate_cache(rounds, 0.05, **about)


def rounds(
    uncached: float, filling: float, cached: float, noise: float = 0.0, seed: int = 0
) -> list[CacheRound]:
    random = np.random.default_rng(seed)

    def one(rate: float) -> CachePass:
        return CachePass(rate * math.exp(noise * random.standard_normal()), 0.5)

    return [CacheRound(one(uncached), one(filling), one(cached)) for _ in range(4)]


@pytest.mark.parametrize(("filling", "cached"), [(1.0, 3.0), (0.8, 1.25), (0.5, 1.1), (1.1, 4.0)])
def test_before_the_break_even_training_is_longer_and_after_it_shorter(
    filling: float, cached: float
) -> None:
    epochs = break_even(filling, cached)
    assert epochs is not None

    def gained(count: float) -> float:
        return count - (1 / filling + (count - 1) / cached)

    assert epochs == 1 or gained(epochs) == pytest.approx(0)
    assert gained(math.ceil(epochs) + 1) > 0
    assert epochs == 1 or gained(epochs * 0.99) < 0


@pytest.mark.parametrize("cached", [1.0, 0.9])
def test_a_cache_that_is_not_faster_never_pays(cached: float) -> None:
    assert break_even(0.9, cached) is None


def test_a_cache_that_fills_for_nothing_pays_at_once() -> None:
    assert break_even(1.0, 2.0) == 1.0


def test_the_least_share_is_starved_at_the_threshold_and_less_of_it_more() -> None:
    uncached, cached = CachePass(100, 0.7), CachePass(400, 0.01)
    share = least_share(uncached, cached, 0.05)
    assert share is not None
    assert with_share(uncached, cached, share).starved_fraction == pytest.approx(0.05)
    assert with_share(uncached, cached, 0.9 * share).starved_fraction > 0.05


def test_the_least_share_of_those_that_need_none_or_more_than_all() -> None:
    assert least_share(CachePass(100, 0.02), CachePass(110, 0.0), 0.05) == 0
    assert least_share(CachePass(100, 0.7), CachePass(110, 0.3), 0.05) is None


def test_half_of_the_data_in_the_cache_takes_half_of_each_time() -> None:
    half = with_share(CachePass(100, 0.6), CachePass(300, 0.2), 0.5)
    assert half.samples_per_s == pytest.approx(1 / (0.5 / 100 + 0.5 / 300))
    assert half.starved_fraction == pytest.approx((0.6 * 3 + 0.2 * 1) / 4)


def simulated_hits(share: float, shuffled: bool, items: int = 2000, epochs: int = 12) -> float:
    random, cache, hits = np.random.default_rng(7), OrderedDict[int, None](), 0
    for epoch in range(epochs):
        for item in map(int, random.permutation(items) if shuffled else range(items)):
            hits += item in cache and epoch > 0
            cache[item] = None
            cache.move_to_end(item)
            if len(cache) > share * items:
                cache.popitem(last=False)
    return hits / (items * (epochs - 1))


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 1.0])
def test_the_hits_of_a_cache_that_evicts_are_those_of_a_simulated_one(share: float) -> None:
    assert evicting_hits(share) == pytest.approx(simulated_hits(share, shuffled=True), abs=0.01)
    assert simulated_hits(share, shuffled=False) == (share == 1)


def test_equal_rounds_give_exact_figures() -> None:
    result = evaluated(rounds(100, 80, 400), limit_bytes=250)
    assert result.gain == pytest.approx(4)
    assert result.gain_interval == pytest.approx((4, 4))
    assert result.difference == "faster"
    assert result.break_even == pytest.approx((1 / 0.8 - 0.25) / 0.75)
    assert result.share == 0.25
    assert result.limited == with_share(result.uncached, result.cached, 0.25)
    assert result.uncached == CachePass(pytest.approx(100), 0.5)


def test_a_cache_that_is_slower_has_never_paid(tmp_path: Path) -> None:
    """As in the report, and in the saved sweep, which has no infinity."""
    result = evaluated(rounds(100, 80, 90))
    assert result.difference == "slower"
    assert result.break_even is None
    assert result.break_even_interval == (None, None)
    sweep = replace(sample_sweep(), local_cache={"/data/clicks-csv": result})
    sweep.save(tmp_path / "sweep.json")
    assert pipeprof.load(tmp_path / "sweep.json") == sweep
    assert "A local cache brings nothing" in str(full_report(sweep))


def test_a_limit_beyond_the_data_set_is_all_of_it() -> None:
    assert evaluated(rounds(100, 80, 400), limit_bytes=5000).share == 1


def test_intervals_hold_the_true_gain_and_break_even() -> None:
    truth = break_even(0.9, 2.0)
    assert truth is not None
    held_gain = held_even = 0
    for seed in range(200):
        result = evaluated(rounds(100, 90, 200, noise=0.05, seed=seed))
        low, high = result.gain_interval
        held_gain += low <= 2 <= high
        soonest, latest = result.break_even_interval
        assert soonest is not None
        held_even += soonest <= truth <= (math.inf if latest is None else latest)
    assert 180 <= held_gain <= 200
    assert held_even >= 180


def test_noise_alone_is_no_gain() -> None:
    found = [evaluated(rounds(100, 100, 100, noise=0.05, seed=seed)) for seed in range(100)]
    assert sum(each.difference == "none" for each in found) >= 90
