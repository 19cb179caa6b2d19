"""The benchmark of guided sweeps, on runs that are simulated: what they find is known."""

import pytest

from benchmarks.prediction_runs import Grid, Job
from benchmarks.sweep_guided import Sweep, behind, sweep
from pipeprof.analyze.predict.workload import Machine
from tests.analyze.test_predict import batches, run_of

TWO = Machine(cores=2)
SLOW, FAST = (Job("sleeping", workers, 2, 0.004, 1) for workers in (1, 4))


@pytest.fixture(scope="module")
def waiting():
    demands = batches(count=160, send_s=0.0003, receive_s=0.0004, latency_s=0.03)
    jobs = Grid().jobs("sleeping", 0.004, 1)
    return {job: run_of(demands, job.setting, TWO) for job in jobs}


def test_a_sweep_asks_for_few_settings_and_finds_one_as_good_as_the_best(waiting):
    found = sweep(waiting, 2)
    assert found.settings == 13
    assert found.trials <= 4
    assert found.best == max(waiting, key=lambda job: waiting[job].batches_per_s)
    assert waiting[found.best].batches_per_s < 1.03 * waiting[found.chosen].batches_per_s


def test_both_choices_are_run_again_on_other_samples():
    pairs = Sweep(3, 13, SLOW, FAST).pairs(2)
    assert [[job.setting for job in pair] for pair in pairs] == [[SLOW.setting, FAST.setting]] * 2
    assert len({job.seed for pair in pairs for job in pair} | {1}) == 3
    assert Sweep(3, 13, FAST, FAST).pairs(2) == [], "there is nothing to be told"


def test_a_choice_is_behind_by_what_it_gives_beside_the_best(waiting):
    """Not by what made it seem the best, which is chance in part."""
    one = Sweep(3, 13, SLOW, FAST)
    runs = {job: waiting[type(job)("sleeping", job.num_workers, 2, 0.004, 1)]
            for pair in one.pairs(2) for job in pair}  # fmt: skip
    times = waiting[FAST].batches_per_s / waiting[SLOW].batches_per_s
    assert behind(one, runs, 2) == pytest.approx([times - 1] * 2)
    assert behind(Sweep(3, 13, FAST, FAST), {}, 2) == [0.0]
