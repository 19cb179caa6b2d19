"""The calibration repeats the runs that it is derived from, and refuses runs that are too few."""

from dataclasses import fields, replace

import numpy as np
import pytest

from pipeprof.analyze.predict.calibrate import calibrate
from pipeprof.analyze.predict.predict import predict
from pipeprof.analyze.predict.workload import Machine, Measured, Setting
from pipeprof.analyze.profile.batch_table import Columns
from pipeprof.errors import UsageError
from pipeprof.model import BatchLog
from tests.analyze.test_predict import STEP_S, batches, calibrated, run_of, truth


def test_the_runs_it_was_made_from_are_repeated():
    demands = batches(cpu_s=0.01, latency_s=0.01)
    assert calibrated(demands, Machine(cores=4)).disagreement < 0.05


def test_runs_in_the_same_setting_that_differ_widen_the_interval():
    demands = batches(cpu_s=0.01)
    settings = (Setting(0), Setting(1, 1), Setting(2, 2))

    def calibrated_on(*scales):
        return calibrate(
            [
                run_of(batches(cpu_s=0.01 * scale), setting, Machine(cores=4))
                for setting in settings
                for scale in scales
            ],
            4,
        )

    alike, apart = calibrated_on(1.0, 1.0), calibrated_on(0.9, 1.1)
    assert alike.noise == pytest.approx(0.0, abs=1e-9)
    assert apart.noise == pytest.approx(np.log(1.1 / 0.9) / 2**0.5, rel=0.1)
    assert len(alike.demands) == 2 * len(calibrated(demands, Machine(cores=4)).demands)

    def width(found):
        low, high = predict(found, Setting(3), STEP_S).interval
        return high - low

    assert width(apart) > 1.5 * width(alike)


def test_too_few_runs_or_batches_are_refused():
    demands = batches(cpu_s=0.01, count=60)
    one, two = (run_of(demands, Setting(workers), Machine(cores=2)) for workers in (1, 2))
    with pytest.raises(UsageError, match="a run with num_workers=2 is needed"):
        calibrate([one], 2)
    short = run_of(demands[:15], Setting(1), Machine(cores=2))
    with pytest.raises(UsageError, match=r"num_workers=1 measured 9 batches from .*; at least 20"):
        calibrate([short, two], 2)


def test_a_loader_of_which_the_workers_were_not_seen_is_not_predicted():
    demands = batches(cpu_s=0.01)
    one, two = (run_of(demands, Setting(workers), Machine(cores=2)) for workers in (1, 2))
    unseen = {**two.columns._arrays, "fetch_start_s": np.full(len(two.columns), np.nan)}
    with pytest.raises(UsageError, match="num_workers=2 measured 0 batches from beginning to end"):
        calibrate([one, replace(two, columns=Columns(unseen))], 2)


def test_without_workers_batches_are_not_collated_into_shared_memory():
    """Nor is it seen how long main takes to hand them out: one worker tells both."""
    machine, more_s, rest_s = Machine(cores=2), 0.004, 0.0005
    demands = batches(cpu_s=0.015, send_s=0.0003, receive_s=0.0004)
    in_workers = [replace(each, cpu_s=each.cpu_s + more_s) for each in demands]

    def seen(setting, system_s=more_s, collate_s=0.006, collate_cpu_s=np.nan):
        run = run_of(in_workers, setting, machine)
        arrays = {name: getattr(run.columns, name) for name in (f.name for f in fields(BatchLog))}
        count = len(run.columns)
        arrays |= {
            "collate_s": np.full(count, collate_s), "system_s": np.full(count, system_s),
            "collate_cpu_s": np.full(count, collate_cpu_s),
            "arrived_s": run.columns.delivered_s - rest_s,
        }  # fmt: skip
        return Measured(setting, Columns(arrays))

    def off(**figures):
        runs = [seen(setting, **figures) for setting in (Setting(1, 1), Setting(2, 2))]
        expected = truth([replace(each, cpu_s=each.cpu_s + rest_s) for each in demands],
                         Setting(0), machine)  # fmt: skip
        found = predict(calibrate(runs, 2), Setting(0), STEP_S)
        return found.batches_per_s / expected.batches_per_s - 1

    assert off() == pytest.approx(0.0, abs=0.03)
    assert off(system_s=np.nan) < -0.1, "the kernel's part is not known: as it is in workers"
    assert off(system_s=0.009, collate_s=0.004 / 0.85) == pytest.approx(0.0, abs=0.03), (
        "whatever else the kernel did, to collate took no longer"
    )
    waits = {"system_s": 0.009, "collate_s": 0.02, "collate_cpu_s": 0.004 / 0.85}
    assert off(**waits) == pytest.approx(0.0, abs=0.03), "waiting needs no shared memory"
