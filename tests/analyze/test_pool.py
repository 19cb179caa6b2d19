"""What batches ask for, put together from runs in several settings."""

from dataclasses import fields

import numpy as np
import pytest

from pipeprof.analyze.predict.batch_costs import BatchCosts
from pipeprof.analyze.predict.workload import Measured, Setting
from pipeprof.analyze.profile.batch_table import Columns
from pipeprof.model import BatchLog


def made(times_s, cpu_s=0.0):
    """A run whose batches took so long to make."""
    made_s = np.array(times_s, float)
    columns = {field.name: np.full(len(made_s), np.nan) for field in fields(BatchLog)} | {
        "fetch_start_s": 0 * made_s, "fetch_end_s": made_s, "cpu_s": cpu_s + 0 * made_s,
    }  # fmt: skip
    return BatchCosts.of([Measured(Setting(1), Columns(columns))])


def test_batches_of_both_are_kept_as_they_were_where_they_are_alike():
    both = made([0.010, 0.012]).pooled_with(made([0.011, 0.011, 0.011]))
    assert both.blocked_s.tolist() == [0.010, 0.012, 0.011, 0.011, 0.011]


def test_what_two_workers_share_is_taken_off():
    """Each waits twice as long, as a storage is full: the batches are the same."""
    both = made([0.010, 0.010, 0.030]).pooled_with(made([0.020, 0.020, 0.060]))
    assert both.blocked_s == pytest.approx([0.010, 0.010, 0.030] * 2)


def test_a_storage_that_lets_some_wait_long_is_shared_as_well():
    """As a throttled disk does: two workers wait twice as long in all, mostly as long as one."""
    ones, twos = [0.009, 0.011] * 50, [0.010] * 270 + [0.110] * 30
    both = made(ones).pooled_with(made(twos))
    assert both.blocked_s.mean() == pytest.approx(0.010)
    assert both.blocked_s[-1] == pytest.approx(0.055), "which waited longest still does"


def test_slow_batches_stay_slow_whoever_made_them():
    """One in twenty by one worker, two by two of them: three in forty."""
    ones, twos = [0.01] * 19 + [0.1], [0.01] * 18 + [0.1] * 2
    both = made(ones).pooled_with(made(twos))
    assert np.sum(both.blocked_s > 0.05) == 3
    assert both.blocked_s.mean() == pytest.approx((37 * 0.01 + 3 * 0.1) / 40)


def test_cpu_time_and_waiting_each_have_a_level_of_their_own():
    both = made([0.010] * 3, cpu_s=0.005).pooled_with(made([0.015] * 3, cpu_s=0.010))
    assert both.cpu_s == pytest.approx([0.005] * 6)
    assert both.blocked_s == pytest.approx([0.005] * 6)


def test_a_trace_of_waiting_has_no_level():
    """Or some microseconds of it, twice as many, would make a slow batch twice as slow."""
    both = made([0.0101] * 3, cpu_s=0.01).pooled_with(made([0.0102] * 2 + [0.05], cpu_s=0.01))
    assert both.blocked_s[-1] == pytest.approx(0.04)
