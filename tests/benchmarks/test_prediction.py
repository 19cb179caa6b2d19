"""The prediction benchmark, on runs that are simulated: what it says of them is known."""

import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.prediction_cells import cells_of
from benchmarks.prediction_pipelines import PIPELINES
from benchmarks.prediction_runs import (
    QUICK,
    TAKES,
    Grid,
    Job,
    bout,
    calibration_jobs,
    load,
    save,
)
from pipeprof.analyze.predict.workload import Machine
from tests.analyze.test_predict import batches, run_of

CELL = Job("computing", 2, 4, 0.004, 1)
DEMANDS = batches(cpu_s=0.01, send_s=0.0003, receive_s=0.0004)


def simulated(job):
    return run_of(DEMANDS, job.setting, Machine(cores=2))


@pytest.fixture
def runs():
    takes = [calibration_jobs("computing", 0.004, 1, take) for take in (0, 1)]
    jobs = [*takes[0], *takes[1], CELL]
    return {job: simulated(job) for job in jobs}


def test_runs_are_kept_in_a_file_and_come_back_whole(runs, tmp_path: Path):
    save(runs, tmp_path / "runs.npz")
    kept = load(tmp_path / "runs.npz")
    assert list(kept) == list(runs)
    for job, run in runs.items():
        assert kept[job].setting == run.setting
        assert kept[job].batches_per_s == run.batches_per_s
        np.testing.assert_array_equal(kept[job].columns.cpu_s, run.columns.cpu_s)


def test_a_cell_holds_the_prediction_beside_what_was_measured(runs):
    (cell,) = cells_of(runs, "computing")
    measured = runs[CELL].batches_per_s
    assert (cell.job, cell.batches_per_s) == (CELL, pytest.approx(measured))
    assert cell.error == pytest.approx(cell.predictions[0].batches_per_s / measured - 1)
    assert abs(cell.error) < 0.06
    assert cell.held == 1.0


def test_a_machine_that_is_slower_in_one_bout_is_so_for_both(runs):
    """Each run is predicted from the calibrations of its own bout."""
    for repeat, cpu_s in ((1, 0.016), (2, 0.006)):
        slower = batches(cpu_s=cpu_s, send_s=0.0003, receive_s=0.0004)
        for job in [job for job in runs if not job.repeat]:
            runs[replace(job, repeat=repeat)] = run_of(slower, job.setting, Machine(cores=2))
    (cell,) = cells_of(runs, "computing")
    rates = [run.batches_per_s for run in cell.runs]
    assert rates[1] < rates[0] < rates[2]
    for told, rate in zip(cell.predictions, rates, strict=True):
        assert told.batches_per_s == pytest.approx(rate, rel=0.06)
    assert abs(cell.error) < 0.06
    assert (cell.held, cell.settle) == (1.0, "")
    off = [rate / told.batches_per_s for told, rate in zip(cell.predictions, rates, strict=True)]
    assert cell.noise == pytest.approx(np.std(off, ddof=1) / np.mean(off) / 3**0.5, rel=0.05)
    assert cell.noise < 0.02, "what bouts differ by is none of it"


def test_the_error_is_that_of_the_middle_bout(runs):
    """A run that was slow while its calibrations were not says nothing of the model; it is told as
    noise, and of all bouts together."""
    alike = [job for job in runs if not job.repeat]
    runs |= {replace(job, repeat=repeat): runs[job] for job in alike for repeat in (1, 2)}
    slow = batches(cpu_s=0.03, send_s=0.0003, receive_s=0.0004)
    runs[replace(CELL, repeat=1)] = run_of(slow, CELL.setting, Machine(cores=2))
    (cell,) = cells_of(runs, "computing")
    assert abs(cell.error) < 0.06
    assert abs(cell.starved_error) < 0.05
    assert cell.overall_error > 0.3
    assert cell.overall_starved_error < -0.05
    assert cell.noise > 0.2


def test_a_pipeline_with_another_step_has_its_own_calibration(runs):
    """A user's profile has the user's step; and what is measured at another says less."""
    quicker = [replace(job, step_s=0.0) for job in runs]
    slow = batches(cpu_s=0.03, send_s=0.0003, receive_s=0.0004)
    runs |= {job: run_of(slow, job.setting, Machine(cores=2)) for job in quicker}
    for cell in cells_of(runs, "computing"):
        assert abs(cell.error) < 0.06


def test_a_bout_spreads_its_calibrations():
    cells = Grid().jobs("computing", 0.004, 1)
    jobs = bout(cells, random.Random(0))
    assert sorted(job.key for job in jobs if job.seed > 0) == sorted(job.key for job in cells)
    first = [jobs.index(calibration_jobs("computing", 0.004, 1, take)[0]) for take in range(TAKES)]
    assert first == [0, 3 + 5, 6 + 9]
    alone = bout(cells, random.Random(0), takes=0)
    assert sorted(job.key for job in alone) == sorted(job.key for job in cells)


def test_the_whole_grid_asks_each_pipeline_for_the_cells_of_the_bar():
    jobs = Grid().jobs("computing", 0.004, 1)
    assert len(jobs) == len(set(jobs)) == 4 * 3 + 1, "without workers nothing is prefetched"
    assert {job.key for job in QUICK.jobs("computing", 0.004, 1)} & {job.key for job in jobs}
    calibration, again = (calibration_jobs("computing", 0.004, 1, take) for take in (0, 1))
    assert not {job.seed for job in calibration} & {job.seed for job in jobs}
    assert not set(calibration) & set(again), "each of other samples"


@pytest.mark.parametrize("name", sorted(PIPELINES))
def test_a_run_is_known_by_its_key(name):
    assert Job.of(Job(name, 2, 4, 0.02, 3, 1).key) == Job(name, 2, 4, 0.02, 3, 1)
