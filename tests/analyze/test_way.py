"""The way of made-up batches, each moment of which is known."""

from dataclasses import replace
from math import inf
from random import Random

import numpy as np
import pytest

from pipeprof.analyze.predict.transfer_fit import TransferModel
from pipeprof.analyze.predict.workload import Machine, Measured, Setting
from pipeprof.analyze.profile.batch_table import Columns
from tests.analyze.test_predict import batches, run_of

SEND_S, PIPE_S, UNPICKLE_S, REST_S = 0.0004, 0.0001, 0.0008, 0.0002


def run(count=40, gap_s=0.0, more_s=0.0, next_early=False):
    """One worker, 10 ms a batch; main asks at once for the next. ``next_early``: the worker goes on
    ``gap_s`` after a batch, and main takes ``more_s`` longer to unpickle the last one; else it
    goes on when that is delivered."""
    way_s = SEND_S + PIPE_S + UNPICKLE_S + more_s
    cycle_s = 0.010 + (gap_s if next_early else way_s + REST_S)
    start_s = cycle_s * np.arange(count)
    end_s = start_s + 0.010
    arrived_s = end_s + way_s
    delivered_s = arrived_s + REST_S
    columns = Columns(
        {
            "index": np.arange(count, dtype=float), "worker": np.zeros(count),
            "fetch_start_s": start_s, "fetch_end_s": end_s, "sent_s": end_s + SEND_S,
            "received_s": end_s + SEND_S + PIPE_S, "arrived_s": arrived_s,
            "delivered_s": delivered_s, "asked_s": np.r_[0.0, delivered_s[:-1]],
        }
    )  # fmt: skip
    return Measured(Setting(1, 2 if next_early else 1), columns)


def test_what_it_takes_is_told_by_a_worker_that_waits_for_its_next_batch():
    transfer = TransferModel([run()], [run(next_early=True, gap_s=0.0003, more_s=0.004)]).demand
    assert transfer.send_s == pytest.approx(SEND_S)
    assert transfer.receive_s == pytest.approx(PIPE_S + UNPICKLE_S + REST_S)
    assert transfer.gap_s == pytest.approx(0.0003)
    assert transfer.receive_blocked_s == pytest.approx(0.004)


def test_a_wait_that_only_the_next_batch_ends_has_no_length_of_its_own():
    """Main has the batch just after the worker has made another."""
    held = run(next_early=True, gap_s=0.0003, more_s=0.0095)
    assert TransferModel([run()], [held]).demand.receive_blocked_s == inf


def test_without_a_run_of_one_waiting_worker_the_quickest_tell():
    held = run(next_early=True, gap_s=0.0003, more_s=0.004)
    transfer = TransferModel([held], [held]).demand
    assert transfer.receive_s == pytest.approx(PIPE_S + UNPICKLE_S + REST_S + 0.004)


def test_a_few_that_were_late_do_not_stand_for_all():
    """Eight of forty met a worker that rested, and a main that was slow to wake up."""
    held = run(next_early=True, gap_s=0.0003, more_s=0.0002)
    late = held.columns.arrived_s.copy()
    late[:8] += 0.009
    start_s = held.columns.fetch_start_s.copy()
    start_s[1:9] = late[:8] + 0.0001
    columns = Columns({**held.columns._arrays, "arrived_s": late, "fetch_start_s": start_s})
    model = TransferModel([Measured(Setting(1, 2), columns)], [])
    assert model.demand.receive_s == pytest.approx(PIPE_S + UNPICKLE_S + REST_S, abs=0.0005)


def test_batches_that_never_came_tell_nothing():
    arrays = {name: np.full(40, np.nan) for name in run().columns._arrays}
    lost = Measured(Setting(1, 1), Columns({**arrays, "index": np.arange(40.0)}))
    transfer = TransferModel([lost], [lost]).demand
    assert (transfer.send_s, transfer.send_blocked_s, transfer.receive_blocked_s) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize(("prefetch", "gap_s"), [(1, 0.0), (3, 0.0004)])
def test_in_any_order_a_worker_has_its_next_batch_when_main_has_one_of_its_own(prefetch, gap_s):
    """With one batch each, workers wait for main, which is no time that they need."""
    known = {"send_s": 0.0004, "receive_s": 0.001, "gap_s": 0.0004}
    demands = [
        replace(each, cpu_s=each.cpu_s * Random(number).choice([1, 1, 5]), **known)
        for number, each in enumerate(batches(cpu_s=0.006))
    ]
    setting = Setting(3, prefetch, in_order=False)
    run = run_of(demands, setting, Machine(cores=8))
    assert TransferModel([run], []).demand.gap_s == pytest.approx(gap_s)
