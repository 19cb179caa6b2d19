"""The evaluation of the overhead on invented rounds, and one short real measurement."""

from dataclasses import replace

import pytest

from pipeprof.selfcheck import run
from pipeprof.selfcheck.cost import compare, measure_cost
from pipeprof.selfcheck.results import ProfilerCost

QUIET = [(1.000, 1.001, 1.004), (1.001, 1.000, 1.005), (1.000, 1.000, 1.003)] * 5


def test_cost_is_against_the_mean_of_both_plain_runs():
    found = compare([(1.0, 1.2, 1.21)] * 5)
    assert found.cost == pytest.approx(0.1)
    assert found.interval == pytest.approx((0.1, 0.1))
    assert found.control == pytest.approx(0.2)


def test_a_small_cost_on_a_quiet_machine_is_within_its_bar():
    found = compare(QUIET)
    assert found.status == "within"
    low, high = found.interval
    assert low <= found.cost <= high < 0.006
    assert found.cost == pytest.approx(0.0035, abs=0.0006)


def test_a_cost_above_one_percent_is_beyond():
    dear = [(plain, again, profiled + 0.01) for plain, again, profiled in QUIET]
    assert compare(dear).status == "beyond"


def test_where_plain_differs_from_plain_nothing_can_be_said():
    noisy = [(1.0, 1.02, 1.004), (1.02, 1.0, 1.005)] * 7
    assert compare(noisy).status == "inconclusive"


def test_a_round_in_which_the_machine_was_busy_changes_little():
    assert compare([*QUIET, (1.0, 1.0, 3.0)]).cost == pytest.approx(compare(QUIET).cost, abs=0.001)


def test_a_real_measurement_has_both_quantities_and_their_control():
    found = measure_cost(0.0)
    assert found.rounds == 5, "the fewest"
    assert 0.0005 < found.batch_s < 0.05
    for one in (found.wall, found.cpu):
        assert one.interval[0] <= one.cost <= one.interval[1]
        assert one.control_interval[0] <= one.control <= one.control_interval[1]


@pytest.mark.parametrize(
    ("status", "passed"), [("within", True), ("inconclusive", True), ("beyond", False)]
)
@pytest.mark.parametrize("which", ["wall", "cpu"])
def test_a_cost_beyond_its_bar_fails_the_check(which, status, passed, monkeypatch):
    one = {name: compare(QUIET) for name in ("wall", "cpu")}
    one[which] = replace(one[which], status=status)
    monkeypatch.setattr(run, "measure_cost", lambda seconds: ProfilerCost(0.0015, 15, 110, **one))
    found = run.check_pipelines(lambda result: None, [], quick=True, with_cost=True)
    assert found.passed is passed
