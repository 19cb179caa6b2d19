"""A sweep that is guided by predictions, over simulated loaders of which every setting is known."""

from dataclasses import replace

import numpy as np
import pytest

from pipeprof.analyze.predict.workload import Demand, Link, Machine, Measured, Setting
from pipeprof.analyze.sweep.noise import Noise
from pipeprof.analyze.sweep.outlooks import (
    Outlook,
    _least_cycle_s,
    calibration,
    predict_untried,
)
from pipeprof.analyze.sweep.search import choose_next, plan
from pipeprof.analyze.thresholds import EQUALLY_FAST
from tests.analyze.test_blame import log
from tests.analyze.test_predict import batches, run_of

GRID = [Setting(0), *(Setting(w, p) for w in (1, 2, 4, 8) for p in (1, 2, 4))]
TWO = Machine(cores=2)
WAY = {"send_s": 0.0004, "receive_s": 0.001, "gap_s": 0.0003}


def sent(demands):
    return [replace(each, **WAY) for each in demands]


PIPELINES = {
    "waits": (sent(batches(latency_s=0.02)), TWO),
    "computes": (sent(batches(cpu_s=0.015)), TWO),
    "computes on sixteen cores": (sent(batches(cpu_s=0.03)), Machine(cores=16)),
    "is quick": (sent(batches(cpu_s=0.001)), TWO),
    "is dear to send": ([replace(each, receive_s=0.02) for each in batches(cpu_s=0.004)], TWO),
    "reads of a full link": (
        sent(batches(link_bytes=1e6, cpu_s=0.001)), replace(TWO, link=Link(80e6, 50e6)),
    ),
    "reads of a link that four fill": (
        sent(batches(link_bytes=1e6)), replace(TWO, link=Link(160e6, 40e6)),
    ),
    "is slow once in twenty": (
        sent([Demand(latency_s=0.15 if number % 20 == 7 else 0.008) for number in range(240)]), TWO,
    ),
    "slows its cores": (sent(batches(cpu_s=0.012)), Machine(cores=2, contention_factor=0.7)),
}  # fmt: skip


def swept(demands, machine):
    """The runs that it took until nothing else could change the answer."""
    runs = []
    while (setting := plan(GRID, runs, machine.cores).trial) is not None:
        assert setting not in [run.setting for run in runs]
        runs.append(run_of(demands, setting, machine))
    return runs


@pytest.mark.parametrize("name", PIPELINES)
def test_it_finds_a_setting_as_good_as_the_best_of_the_grid_in_few_trials(name):
    demands, machine = PIPELINES[name]
    runs = swept(demands, machine)
    best = max(run_of(demands, setting, machine).batches_per_s for setting in GRID)
    assert max(run.batches_per_s for run in runs) >= best * (1 - EQUALLY_FAST)
    assert len(runs) <= 6 < len(GRID) / 2


def test_it_begins_with_one_worker_and_two_that_prefetch_as_by_default():
    assert calibration(GRID) == (Setting(1, 2), Setting(2, 2))
    assert calibration([Setting(8, 4), Setting(16, 4)]) == (Setting(1, 4), Setting(2, 4))
    assert plan(GRID, [], 2).trial == Setting(1, 2)


def test_predictions_have_the_order_and_the_pinning_of_the_runs():
    """A thread pins for 8 ms while main trains. Without workers, main pins too."""
    demands = sent([replace(each, pin_s=0.008) for each in batches(latency_s=0.02)])
    pinned = [replace(each, pin_memory=True, in_order=False) for each in GRID]
    runs = [run_of(demands, each, TWO) for each in calibration(pinned)]
    outlooks = {each.setting: each for each in plan(GRID, runs, 2).outlooks}
    many, none = Setting(8, 4, in_order=False, pin_memory=True), pinned[0]
    truth = run_of(demands, many, TWO).batches_per_s
    assert outlooks[many].batches_per_s == pytest.approx(truth, rel=0.08)
    by_main = [replace(each, latency_s=each.latency_s + 0.008) for each in demands]
    truth = run_of(by_main, none, TWO).batches_per_s
    assert outlooks[none].batches_per_s == pytest.approx(truth, rel=0.08)


def test_what_is_as_good_and_cheaper_is_tried_too():
    """Four workers give all that a link has, and so would two: they are tried as well."""
    demands, machine = PIPELINES["reads of a full link"]
    wide = [Setting(4, 2), Setting(8, 2), Setting(3, 2)]
    runs = [run_of(demands, each, machine) for each in (*calibration(wide), Setting(8, 2))]
    assert plan(wide, runs, 2).trial == Setting(3, 2)


def test_what_runs_differ_by_widens_intervals_and_calls_for_no_trial():
    """Whatever one run gives by chance, no other run would settle."""
    demands, machine = PIPELINES["computes"]
    runs = [run_of(demands, each, machine) for each in calibration(GRID)]
    quiet, noisy = (plan(GRID, runs, 2, Noise(sd**2, 5)) for sd in (0.01, 0.2))
    assert quiet.trial == noisy.trial
    for one, other in zip(quiet.outlooks, noisy.outlooks, strict=True):
        assert (one.batches_per_s, one.most) == (other.batches_per_s, other.most)
        assert other.interval[0] < one.interval[0] < one.batches_per_s
        assert one.most < one.interval[1] < other.interval[1]
    drifting = plan(GRID, runs, 2)
    assert all(each.interval[0] < each.batches_per_s < each.interval[1]
               for each in drifting.outlooks)  # fmt: skip


def test_what_was_not_tried_is_told_with_what_it_would_give():
    demands, machine = PIPELINES["waits"]
    runs = [run_of(demands, each, machine) for each in calibration(GRID)]
    outlooks = {each.setting: each for each in plan(GRID, runs, 2).outlooks}
    assert len(outlooks) == len(GRID) - 2
    for setting in (Setting(4, 2), Setting(8, 4)):
        truth = run_of(demands, setting, machine).batches_per_s
        assert outlooks[setting].batches_per_s == pytest.approx(truth, rel=0.06)
        assert outlooks[setting].most >= truth * 0.97


def test_a_run_of_which_pinning_was_not_observed_is_not_tried_again():
    """As without workers; else a sweep would never end."""
    demands = sent([replace(each, pin_s=0.002) for each in batches(latency_s=0.02)])
    one, two = (run_of(demands, replace(each, pin_memory=True), TWO) for each in calibration(GRID))
    none = run_of(demands, Setting(0), TWO)
    untried = {each.setting.num_workers for each in plan(GRID, [one, two, none], 2).outlooks}
    assert untried == {1, 2, 4, 8}


def test_a_run_with_one_worker_that_feeds_the_accelerator_needs_none_with_two():
    """What is left to try is cheaper: no worker, where its fetch is short beside the step."""
    quick = batches(cpu_s=0.00002)
    one = run_of(quick, Setting(1, 2), TWO)
    assert plan(GRID, [one], 2).trial == Setting(0)
    fed = plan(GRID, [one, run_of(quick, Setting(0), TWO)], 2)
    assert fed.trial is None
    assert {each.setting for each in fed.outlooks} == {*GRID} - {Setting(0), Setting(1, 2)}
    assert not any(each.may_be_faster for each in fed.outlooks)


def test_a_sweep_of_one_data_set_has_two_trials_at_least():
    """One of them is repeated, to show how much runs differ. Forms have a control."""
    grid = [Setting(1, 1), Setting(2, 1), Setting(4, 1)]
    one = run_of(batches(cpu_s=0.001), grid[0], TWO)
    rate = one.batches_per_s
    slower = tuple(Outlook(each, rate, rate, (rate, rate), False) for each in grid[1:])
    assert choose_next(grid, [one], slower).trial == Setting(2, 1)
    assert choose_next(grid, [one], slower, rival=0.9 * rate).trial is None


@pytest.mark.parametrize(("busy", "seconds"), [(False, 0.013), (True, 0.010)])
def test_a_hand_over_limits_all_settings_unless_it_waits_for_a_worker_that_fetches(busy, seconds):
    """Each batch is ready 1 ms before main asks for it, and handed out 3 ms later; a step is 10."""
    turn = 0.013 * np.arange(40)
    ended = turn + (0.0005 if busy else -0.0015)
    made = log(
        asked_s=turn, delivered_s=turn + 0.003, done_s=turn + 0.013, sent_s=turn - 0.001,
        fetch_start_s=ended - 0.01, fetch_end_s=ended,
    )  # fmt: skip
    run = Measured(Setting(1, 2), made)
    assert _least_cycle_s([run], with_workers=True) == pytest.approx(seconds)
    assert _least_cycle_s([run], with_workers=False) == pytest.approx(0.01)


def chosen(runs, rival, **options):
    return choose_next(GRID, runs, predict_untried(GRID, runs, 2), rival, **options)


def test_a_form_of_the_data_that_cannot_reach_another_is_searched_no_further():
    """Two cores compute twice as much as one at most, and not four times."""
    demands, machine = PIPELINES["computes"]
    one, two = (run_of(demands, each, machine) for each in calibration(GRID))
    rate = one.batches_per_s
    out_of_reach = chosen([one], rival=4 * rate)
    assert out_of_reach.trial is None
    assert max(each.most for each in out_of_reach.outlooks) < 3 * rate
    assert any(each.may_be_faster for each in out_of_reach.outlooks)
    assert chosen([one, two], rival=4 * rate).trial is None
    assert chosen([one], rival=1.5 * rate).trial == two.setting
    assert chosen([one], rival=4 * rate, for_comparison=True).trial == two.setting


def test_a_cheaper_setting_is_of_no_interest_where_a_rival_is_faster():
    quick = batches(cpu_s=0.00002)
    one = run_of(quick, Setting(1, 2), TWO)
    fed = plan(GRID, [one], 2)
    assert (fed.trial, fed.is_cheaper) == (Setting(0), True)
    assert chosen([one], rival=1.01 * one.batches_per_s).trial == Setting(0)
    assert chosen([one], rival=1.05 * one.batches_per_s, for_comparison=True).trial is None


def test_a_slower_rival_changes_nothing():
    demands, machine = PIPELINES["waits"]
    runs = [run_of(demands, each, machine) for each in calibration(GRID)]
    assert chosen(runs, rival=0.5 * runs[0].batches_per_s) == plan(GRID, runs, 2)
