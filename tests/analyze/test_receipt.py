"""What it takes to receive a batch, from simulated runs of which it is known."""

from dataclasses import replace
from math import inf, nan

import numpy as np
import pytest

from pipeprof.analyze.predict.dataloader_sim import simulate
from pipeprof.analyze.predict.receive_fit import fit_receiving
from pipeprof.analyze.predict.workload import Machine, Setting
from pipeprof.analyze.profile.batch_table import pinned_before_s
from tests.analyze.test_predict import batches, run_of

MACHINE = Machine(cores=4)
KNOWN = [
    replace(each, send_s=0.0002, receive_s=0.001, late_s=0.003) for each in batches(cpu_s=0.002)
]
"""In 4 ms, the step of `run_of`, one worker makes two."""


@pytest.mark.parametrize(
    "setting", [Setting(1, 1), Setting(2, 2), Setting(2, 2, pin_memory=True)], ids=str
)
def test_what_main_takes_longer_than_its_own_part_is_lateness(setting):
    guessed = tuple(replace(each, late_s=0.0) for each in KNOWN)
    found = fit_receiving(guessed, MACHINE, [run_of(KNOWN, setting, MACHINE)])[0]
    assert found.receive_s == 0.001
    assert found.late_s == pytest.approx(0.003, rel=0.05)


def test_with_batches_missing_the_thread_that_pins_is_as_late():
    run = run_of(KNOWN, Setting(2, 2, pin_memory=True), MACHINE)
    windows = np.arange(len(run.columns)) % 40 < 16
    recorded = replace(run, columns=run.columns.take(windows))
    found = fit_receiving(tuple(KNOWN), MACHINE, [recorded])[0]
    assert found.late_s == pytest.approx(0.003, rel=0.1)


def test_with_no_two_consecutive_batches_nothing_is_fitted():
    run = run_of(KNOWN, Setting(2, 2, pin_memory=True), MACHINE)
    recorded = replace(run, columns=run.columns.take(np.arange(len(run.columns)) % 2 == 0))
    assert fit_receiving(tuple(KNOWN), MACHINE, [recorded]) == tuple(KNOWN)


def test_the_batch_pinned_before_is_unknown_where_it_was_not_recorded():
    index, pinned_s = np.array([3.0, 4, 5, 8, 9]), np.array([0.1, 0.4, 0.3, 0.7, 0.6])
    before_s = pinned_before_s(pinned_s, index)
    np.testing.assert_equal(before_s, [nan, 0.3, 0.1, 0.6, nan])


def test_it_may_be_received_sooner_than_was_thought():
    dear = tuple(replace(each, receive_s=0.009, late_s=0.0) for each in KNOWN)
    found = fit_receiving(dear, MACHINE, [run_of(KNOWN, Setting(2, 2), MACHINE)])[0]
    assert found.receive_s == pytest.approx(0.004, rel=0.05)
    assert found.late_s == 0


@pytest.mark.parametrize("guess", [0.006, inf])
def test_what_is_least_known_is_waiting_for_a_workers_interpreter(guess):
    """Main's own part is left as it is."""
    known = [
        replace(each, late_s=0.0, receive_blocked_s=0.002, cpu_s=6 * each.cpu_s) for each in KNOWN
    ]
    guessed = tuple(replace(each, receive_blocked_s=guess) for each in known)
    found = fit_receiving(guessed, MACHINE, [run_of(known, Setting(2, 2), MACHINE)])[0]
    assert found.receive_blocked_s == pytest.approx(0.002, rel=0.2)
    assert (found.receive_s, found.late_s) == (0.001, 0.0)


def test_main_is_late_for_each_batch_and_its_worker_goes_on_meanwhile():
    def wait_s(cpu_s):
        demands = [replace(each, cpu_s=cpu_s, step_s=0.004) for each in KNOWN]
        run = simulate(demands, Setting(1, 2), MACHINE).after(10)
        return (run.delivered_s - run.asked_s).mean()

    assert wait_s(0.0001) == pytest.approx(0.001 + 0.003)
    assert wait_s(0.02) == pytest.approx(0.02 - 0.004, abs=0.0005), "a worker's turn, less the step"
