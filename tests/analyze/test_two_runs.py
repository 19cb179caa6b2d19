"""Two runs against each other, drawn from distributions that are known."""

from __future__ import annotations

from dataclasses import replace

import hypothesis
import numpy as np
import pytest

from pipeprof.analyze.compare.runs import between_runs, two_runs
from pipeprof.analyze.thresholds import DRIFT_OF_COMPUTING, DRIFT_OF_HAND_OVER, DRIFT_OF_WAITING
from pipeprof.model import BatchLog, Profile, TwoRuns
from tests.comparisons import STEP_S, compared, drawn
from tests.samples import fed_profile, sample_profile
from tests.stage_samples import stage_stats
from tests.strategies import values

FILES = ("before.json", "after.json")
SEEDS = 30

CORRELATIONS = [(0.5, 0.9), pytest.param(0.9, 0.85, marks=pytest.mark.slow)]
"""Of the batches of a run, and the least share of runs that must be told right."""


def pairs(correlation: float = 0.7, decode_ms: float = 12.0) -> list[TwoRuns]:
    """Runs that differ in nothing but chance and ``decode_ms``; no more is said of runs than that
    their batches vary."""
    return [
        two_runs(
            drawn(seed, correlation=correlation),
            drawn(1000 + seed, correlation=correlation, decode_ms=decode_ms),
            FILES,
            drift=0.0,
        )
        for seed in range(SEEDS)
    ]


def share(told: list[bool]) -> float:
    return sum(told) / len(told)


def holds(interval: tuple[float, float] | None, truth: float) -> bool:
    return interval is not None and interval[0] <= truth <= interval[1]


@pytest.mark.parametrize(("correlation", "least"), CORRELATIONS)
def test_the_same_twice_is_no_difference(correlation: float, least: float) -> None:
    found = pairs(correlation)
    assert share([pair.speed.shown == "none" for pair in found]) >= least
    assert share([pair.starved.shown == "none" for pair in found]) >= least
    stages = [all(stage.shown == "none" for stage in pair.stages.values()) for pair in found]
    assert share(stages) >= least, "of all stages together"


@pytest.mark.parametrize(("correlation", "least"), CORRELATIONS)
def test_intervals_hold_a_difference_that_is_known(correlation: float, least: float) -> None:
    """A turn takes 18 ms, and 24 with a decoding that is half as long again."""
    found = pairs(correlation, decode_ms=18.0)
    assert share([holds(pair.speed.interval, 18 / 24) for pair in found]) >= least
    starved = (24 - 10) / 24 - (18 - 10) / 18
    assert share([holds(pair.starved.interval, starved) for pair in found]) >= least
    assert share([holds(pair.stall.interval, 0.006) for pair in found]) >= least
    assert share([holds(pair.stages["decode"].interval, 0.006) for pair in found]) >= least
    assert share([holds(pair.stages["read"].interval, 0.0) for pair in found]) >= least


def test_what_is_slower_is_told_and_which_stage_it_is() -> None:
    (pair,) = compared(drawn(0), drawn(1, decode_ms=18.0)).pairs
    assert pair.speed.shown == "slower"
    assert pair.headline.startswith("Slower: 0.7")
    assert "decode takes" in pair.headline
    assert "more a batch" in pair.headline
    assert [name for name, stage in pair.stages.items() if stage.shown == "more"] == [
        "decode", "fetch", "wait",
    ]  # fmt: skip
    (back,) = compared(drawn(1, decode_ms=18.0), drawn(0)).pairs
    assert back.speed.shown == "faster"
    assert "less a batch" in back.headline


def test_the_figures_are_those_of_the_profiles() -> None:
    before, after = drawn(0), drawn(1, decode_ms=18.0)
    pair = two_runs(before, after, FILES)
    assert pair.speed.ratio == pytest.approx(
        after.throughput.samples_per_s / before.throughput.samples_per_s
    )
    decode = pair.stages["decode"]
    assert (decode.before, decode.after) == (
        before.stages["decode"].mean_s, after.stages["decode"].mean_s,
    )  # fmt: skip
    assert decode.change == pytest.approx(after.stages["decode"].mean_s - (decode.before or 0))
    assert pair.stall.before == pytest.approx(before.stall_s / before.measured_batches)
    assert (pair.before.file, pair.after.kept_batches) == ("before.json", 398)


def test_runs_of_one_setting_differ_and_intervals_know_it() -> None:
    """Each run is slower or faster as a whole, which its batches do not tell."""
    held, blind = [], []
    random = np.random.default_rng(5)
    for seed in range(20):
        slow = np.exp(random.normal(0, DRIFT_OF_COMPUTING / 1.96 / 2**0.5, 2))
        one, other = (
            drawn(100 * seed + place, 6 * slow[place], 12 * slow[place], 600, resources={})
            for place in range(2)
        )
        held.append(holds(two_runs(one, other, FILES).speed.interval, 1.0))
        blind.append(holds(two_runs(one, other, FILES, drift=0.0).speed.interval, 1.0))
    assert share(held) >= 0.9
    assert share(blind) < 0.9


def test_how_much_runs_differ_goes_by_what_their_workers_do() -> None:
    waits, computes = (
        drawn(0),
        drawn(0, resources={"cpu": stage_stats(1), "blocked": stage_stats(0)}),
    )
    assert between_runs(waits, waits) == pytest.approx(DRIFT_OF_WAITING, abs=0.003)
    assert between_runs(waits, computes) == DRIFT_OF_COMPUTING
    assert between_runs(drawn(0, resources={}), waits) == DRIFT_OF_COMPUTING, "not known: the worst"
    assert (
        between_runs(fed_profile(blame={}), fed_profile(resources={}, blame={})) == DRIFT_OF_WAITING
    )
    busy = drawn(0, resources={**waits.resources, "run-queue": stage_stats(2.0)})
    assert between_runs(waits, busy) == pytest.approx(
        DRIFT_OF_WAITING + 0.1 + 0.04 * 3 / 20, abs=0.003
    )
    blame = {"decode": 2.0, "transfer": 1.0, "main": 0.5}
    handed = drawn(0, wall_s=10.0, blame=blame)
    assert between_runs(waits, handed) == pytest.approx(
        DRIFT_OF_WAITING + 0.15 * DRIFT_OF_HAND_OVER, abs=0.003
    )


def test_less_than_three_per_cent_is_no_difference() -> None:
    plain = sample_profile()
    quick = replace(plain.throughput, samples_per_s=61_600.0, interval=(61_550.0, 61_650.0))
    sure = replace(plain.throughput, interval=(60_200.0, 60_270.0))
    pair = two_runs(
        replace(plain, throughput=sure), replace(plain, throughput=quick), FILES, drift=0.0
    )
    assert pair.speed.interval is not None
    assert pair.speed.interval[0] > 1
    assert pair.speed.shown == "none"


def test_too_few_batches_tell_nothing() -> None:
    pair = two_runs(drawn(0), drawn(1, batches=10, decode_ms=30.0), FILES)
    assert pair.after.measured_batches == 8
    assert (pair.speed.shown, pair.speed.interval) == ("unknown", None)
    assert pair.headline.startswith("Inconclusive: 0.")
    assert {stage.shown for stage in pair.stages.values()} == {"unknown"}
    assert pair.starved.interval is None


def test_a_profile_that_kept_no_batches_still_tells_its_throughput() -> None:
    bare = drawn(1, decode_ms=18.0, batches=400)
    pair = two_runs(drawn(0), replace(bare, batches=BatchLog()), FILES)
    assert pair.speed.shown == "slower"
    assert pair.stages["decode"].change is not None
    assert pair.stages["decode"].shown == "unknown"
    odd = replace(bare.batches, read_s=(0.1,))
    assert two_runs(drawn(0), replace(bare, batches=odd), FILES).after.kept_batches == 0


def test_nothing_measured() -> None:
    nothing = replace(
        drawn(0), measured_batches=0, wall_s=0.0, stall_s=0.0, stages={},
        throughput=replace(drawn(0).throughput, samples_per_s=0.0, batches_per_s=0.0),
    )  # fmt: skip
    pair = two_runs(nothing, drawn(1), FILES)
    assert pair.speed.ratio is None
    assert pair.headline.startswith("Inconclusive: no throughput")
    assert pair.stages["decode"].before is None


def test_a_stage_that_one_did_not_see_is_not_compared() -> None:
    before, after = drawn(0), drawn(1)
    seen = {name: stage for name, stage in after.stages.items() if name != "read"}
    read = two_runs(before, replace(after, stages=seen), FILES).stages["read"]
    assert (read.after, read.change, read.shown) == (None, None, "unknown")
    assert read.before == before.stages["read"].mean_s


def test_batches_of_other_sizes_are_compared_by_the_sample() -> None:
    """Twice as many samples take twice as long: nothing has changed."""
    before, after = drawn(0), drawn(1, read_ms=12.0, decode_ms=24.0, batch_size=64)
    pair = two_runs(before, after, FILES)
    assert pair.per == "sample"
    assert pair.stages["decode"].before == pytest.approx(before.stages["decode"].mean_s / 32)
    assert pair.stages["decode"].after == pytest.approx(after.stages["decode"].mean_s / 64)
    assert pair.stages["decode"].shown == "none"
    assert any("of other sizes" in why for why in pair.unlike)
    assert pair.stages["step"].after == pytest.approx(STEP_S / 64)


def test_the_warm_up_of_each_epoch_is_left_out() -> None:
    one = drawn(0, batches=200)
    log = one.batches
    twice = replace(
        log,
        epoch=(0,) * 100 + (1,) * 100,
        nth=(*range(100), *range(100)),
        epoch_batches=(100,) * 200,
    )
    profile = replace(one, batches=twice, warmup_batches=8)
    assert two_runs(profile, profile, FILES).before.kept_batches == 192


@pytest.mark.slow
@hypothesis.settings(max_examples=25)
@hypothesis.given(values(Profile), values(Profile))
def test_whatever_the_types_allow_can_be_compared(before: Profile, after: Profile) -> None:
    for pair in (two_runs(before, after, FILES), two_runs(before, drawn(0), FILES)):
        assert set(pair.stages) == {*before.stages, *pair.stages}
        assert pair.headline


def test_where_the_waits_are_not_those_of_the_training_rates_alone_are_compared() -> None:
    plain, slower = drawn(1), drawn(2, decode_ms=24.0)
    ahead = replace(slower, diagnosis=replace(slower.diagnosis, unjudged="taken-ahead"))
    pair = two_runs(plain, ahead, FILES)
    assert pair.speed.shown == "slower"
    assert (pair.after.starved_fraction, pair.starved.change, pair.stall.change) == (None,) * 3
    assert "accelerator" not in pair.headline
