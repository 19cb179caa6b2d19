"""The benchmark of guided sweeps, on runs that are simulated: what they find is known."""

import pytest

from benchmarks.prediction_runs import Grid, Job, calibration_jobs
from benchmarks.sweep_guided import bouts_of, judged, swept
from pipeprof.analyze.demand import Machine, Setting
from tests.analyze.test_predict import batches, run_of

TWO = Machine(cores=2)


def bout(**means):
    demands = batches(count=160, send_s=0.0003, receive_s=0.0004, **means)
    jobs = Grid().jobs("sleeping", 0.004, 1)
    return {job.setting: run_of(demands, job.setting, TWO) for job in jobs}


@pytest.fixture(scope="module")
def waiting():
    return bout(latency_s=0.03)


def test_a_sweep_asks_for_few_settings_and_finds_one_as_good_as_the_best(waiting):
    tried = swept(waiting, 2)
    sweep = judged(tried, waiting, waiting)
    assert sweep.settings == 13
    assert sweep.trials == len(tried) <= 4
    assert 0 <= sweep.behind <= 0.03


def test_a_choice_is_judged_by_what_it_gives_in_another_bout(waiting):
    """What was fastest there by chance is not so here."""
    lucky = dict(waiting)
    best = max(waiting, key=lambda setting: waiting[setting].batches_per_s)
    worst = Setting(1, 4)
    lucky[best], lucky[worst] = lucky[worst], lucky[best]
    assert judged(swept(waiting, 2), waiting, lucky).behind == pytest.approx(0, abs=0.03)


def test_cells_are_told_from_calibrations_and_bouts_from_each_other(waiting):
    cells = {Job("sleeping", each.num_workers, each.prefetch_factor, 0.004, 1, 1): run
             for each, run in waiting.items()}  # fmt: skip
    first = {Job("sleeping", 1, 1, 0.004, 1, 0): waiting[Setting(1, 1)]}
    other = {Job("sleeping", 1, 1, 0.0, 1, 0): waiting[Setting(1, 1)]}
    jobs = calibration_jobs("sleeping", 0.004, 1)
    calibrations = {job: waiting[job.setting] for job in jobs if job.num_workers}
    found = bouts_of({**cells, **first, **other, **calibrations}, "sleeping", 0.004)
    assert sorted(len(each) for each in found) == [1, 13]
