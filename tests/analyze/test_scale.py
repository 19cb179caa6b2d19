"""A job of many ranks, simulated from what one of them spends."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pipeprof.analyze.job.scale import LEAST_BATCHES, RankCosts, _pareto, _run, scale_job
from pipeprof.analyze.predict.dataloader_sim import simulate
from pipeprof.analyze.predict.workload import Demand, Setting
from pipeprof.model import JobPlace, Profile
from pipeprof.sizing.cluster import Cluster, simulate_cluster
from tests.samples import sample_profile

RANDOM = np.random.default_rng(3)


def costs(made_s, step_s, workers=1, prefetch=2) -> RankCosts:
    made = np.full(100, made_s) if np.isscalar(made_s) else made_s
    step = np.full(100, step_s) if np.isscalar(step_s) else step_s
    return RankCosts(made, step, 0.0, workers, workers * prefetch)


@pytest.mark.parametrize("ranks", [1, 8, 100])
def test_where_all_batches_are_alike_more_ranks_lose_nothing(ranks):
    job = scale_job(costs(0.030, 0.020), ranks)
    assert job.cycle_s == pytest.approx(0.030)
    assert (job.useful, job.loading) == (pytest.approx(2 / 3), pytest.approx(1 / 3))
    assert job.tails == job.slowest_step == job.storage == pytest.approx(0)


def test_workers_share_the_batches_and_without_them_main_loads():
    assert scale_job(costs(0.030, 0.020, workers=2), 4).cycle_s == pytest.approx(0.020)
    assert scale_job(costs(0.030, 0.020, workers=0), 4).cycle_s == pytest.approx(0.050)


def test_a_step_lasts_as_long_as_that_of_the_slowest_rank():
    step_s = np.where(RANDOM.random(400) < 0.5, 0.010, 0.020)
    job = scale_job(costs(np.full(400, 0.001), step_s), 2)
    # three times out of four one of the two has the longer one
    assert job.cycle_s == pytest.approx(0.0175, rel=0.05)
    assert job.useful == pytest.approx(0.015 / 0.0175, rel=0.05)
    assert job.slowest_step == pytest.approx(1 - job.useful, abs=0.01)
    assert scale_job(costs(np.full(400, 0.001), step_s), 64).cycle_s == pytest.approx(0.020)


def test_late_batches_hinder_the_more_the_more_ranks_there_are():
    made_s = np.where(RANDOM.random(400) < 0.02, 0.200, 0.010)
    few, many = (scale_job(costs(made_s, np.full(400, 0.020)), ranks) for ranks in (2, 64))
    assert few.tails < many.tails
    assert many.loading == pytest.approx(0)
    assert many.useful < 0.3 < 0.7 < few.useful


def test_a_storage_that_all_share():
    job = scale_job(costs(0.010, 0.020), 8, storage_s=0.040)
    assert job.cycle_s == pytest.approx(0.040)
    assert (job.useful, job.storage) == (pytest.approx(0.5), pytest.approx(0.5))


def test_time_for_the_exchange_is_time_to_load():
    job = scale_job(costs(0.030, 0.020), 8, sync_s=0.005)
    assert job.cycle_s == pytest.approx(0.030)
    assert job.sync == pytest.approx(5 / 30)
    assert job.loading == pytest.approx(5 / 30)


@pytest.mark.parametrize(("workers", "prefetch"), [(1, 1), (2, 1), (3, 2)])
def test_a_single_rank_is_as_the_loader_is_simulated(workers, prefetch):
    """The events of torch's loader, one by one, are another way to the same pace."""
    made_s = RANDOM.lognormal(np.log(0.03), 0.5, 300)
    step_s = RANDOM.lognormal(np.log(0.02), 0.2, 300)
    alone = costs(made_s, step_s, workers, prefetch)
    demands = [
        Demand(latency_s=made, step_s=step) for made, step in zip(made_s, step_s, strict=True)
    ]
    done_s = simulate(demands, Setting(workers, prefetch)).done_s
    first = alone.in_flight + 8
    expected = (done_s[-1] - done_s[first - 1]) / (300 - first)
    assert _run(alone, made_s[None], step_s[None]) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("spread", [0.0, 0.3, 0.6])
def test_it_agrees_with_the_cluster_that_is_simulated_from_figures(spread):
    """16 nodes whose reads take 60 ms, three at a time, and steps 30 ms."""
    run = simulate_cluster(
        Cluster(16, 0.030, 1.0, latency_s=0.060, ahead=3, read_spread=spread), range(6)
    )
    sigma = np.sqrt(np.log(1 + spread**2))
    made_s = RANDOM.lognormal(np.log(0.060) - sigma**2 / 2, sigma, 2000)
    job = scale_job(costs(made_s, np.full(2000, 0.030), workers=3, prefetch=1), 16)
    assert job.useful == pytest.approx(run.au, abs=0.04)


def test_the_tail_is_continued_beyond_what_was_recorded():
    made_s = RANDOM.exponential(0.010, 300)
    job = scale_job(costs(made_s, np.full(300, 0.010)), 4096)
    low_s, high_s = job.cycle_interval_s
    fresh_s = RANDOM.exponential(0.010, (4096, 320))
    truth_s = _run(costs(made_s, 0.010), fresh_s, np.full_like(fresh_s, 0.010))
    assert low_s < truth_s < high_s


def test_shape_and_scale_of_a_tail():
    shape, scale = _pareto(np.sort(RANDOM.exponential(2.0, 20_000)))
    assert (shape, scale) == (pytest.approx(0, abs=0.05), pytest.approx(2, rel=0.05))
    heavy = 1 / 0.3 * (RANDOM.random(20_000) ** -0.3 - 1)
    assert _pareto(np.sort(heavy))[0] == pytest.approx(0.3, abs=0.05)


def recorded(count: int) -> Profile:
    """A profile of as many batches of a sample's steady state."""
    profile = sample_profile()
    log = profile.batches
    again = [number % len(log.index) for number in range(count)]
    columns = {name: tuple(column[row] for row in again)
               for name, column in vars(log).items() if column}  # fmt: skip
    return replace(
        profile,
        batches=replace(
            log, **columns | {"nth": tuple(range(8, count + 8)), "epoch_batches": (count,) * count}
        ),
    )


def test_costs_of_a_profile():
    found = RankCosts.of(recorded(60))
    assert found is not None
    assert (found.workers, found.in_flight, len(found.made_s)) == (2, 4, 60)
    assert found.made_s.mean() == pytest.approx(0.034, rel=0.1)
    assert found.step_s.mean() == pytest.approx(0.010, rel=0.1)
    assert RankCosts.of(recorded(LEAST_BATCHES - 1)) is None


def test_steps_of_a_job_hold_waits_and_count_as_short_as_the_shortest():
    profile = recorded(60)
    place = replace(profile.environment, job=JobPlace("Slurm", 0, world_size=4))
    found = RankCosts.of(replace(profile, environment=place))
    assert np.ptp(found.step_s) == 0
    assert found.step_s[0] <= np.median(RankCosts.of(profile).step_s)
