"""The limits, applied to invented results whose evaluation is known."""

from dataclasses import replace

import pytest

from pipeprof.model import BatchLog, Finding, Recommendation
from pipeprof.selfcheck.evaluate import as_planned, evaluate
from pipeprof.selfcheck.pipelines import Pipeline
from tests.selfcheck.known import (
    COUNT,
    TRUE_MS,
    diagnosis,
    iteration,
    iterations,
    pipeline,
    profile,
    stats,
)


def evaluated(invented: Pipeline, **changes):
    return evaluate(invented, iterations(), profile(**changes))


def figure(name, invented=None, **changes):
    result = evaluated(invented or pipeline([name]), **changes)
    return next(figure for figure in result.figures if figure.name == name)


def claim(name, invented=None, **changes):
    result = evaluated(invented or pipeline(), **changes)
    return next(claim for claim in result.claims if claim.name == name)


def test_an_exact_profile_is_right():
    every = [name for name in TRUE_MS if name not in ("cpu", "run-queue")]
    result = evaluated(pipeline(every, counted=("bytes", "requests")))
    assert (result.outcome, result.why) == ("right", "")
    assert [figure.name for figure in result.figures] == every
    assert {figure.status for figure in result.figures} == {"right"}
    assert all(claim.holds for claim in result.claims)
    assert result.batch_s == pytest.approx(0.020)
    assert result.batches == COUNT


@pytest.mark.parametrize(
    ("off_ms", "status"), [(0.59, "right"), (-0.59, "right"), (0.61, "off"), (-0.61, "off")]
)
def test_a_stage_may_be_off_by_3_percent_of_a_batch(off_ms, status):
    stages = {**profile().stages, "read": stats(2 + off_ms)}
    found = figure("read", stages=stages)
    assert found.status == status
    assert found.bar_s == pytest.approx(0.0006)
    assert (found.truth_s, found.measured_s) == pytest.approx((0.002, 0.002 + off_ms / 1e3))


def test_of_short_batches_a_stage_may_be_off_by_200_microseconds():
    short = [replace(iteration(), asked_s=0.0, delivered_s=0.001, done_s=0.002)] * COUNT
    result = evaluate(pipeline(["read"]), short, profile())
    assert result.figures[0].bar_s == 0.0002


def test_a_stage_that_is_not_shown_is_off_unless_pipeprof_says_so():
    stages = {name: one for name, one in profile().stages.items() if name != "read"}
    assert figure("read", stages=stages).status == "off"
    found = figure("read", stages=stages, missing={"read": "it is a black box"})
    assert (found.status, found.measured_s) == ("unknown", None)
    assert figure("cpu").status == "unknown", "not to be had on every kernel"


def test_a_figure_without_truth_is_left_out():
    result = evaluate(pipeline(["pin"]), iterations(), profile())
    assert result.figures == ()


def test_resources_are_compared_over_the_batches_that_were_sampled():
    some = iterations()
    for n in (3, 7):
        fetch = replace(some[n].fetch, collate_end_s=some[n].fetch.collate_end_s + 0.010)
        some[n] = replace(some[n], fetch=fetch)
    sampled = BatchLog(runqueue_s=tuple(0.0 if n in (3, 7) else None for n in range(COUNT)))
    changes = profile(resources={"run-queue": stats(15)}, batches=sampled)
    (found,) = evaluate(pipeline(["run-queue"]), some, changes).figures
    assert (found.truth_s, found.status) == (pytest.approx(0.015), "right")


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("verdict", {"diagnosis": diagnosis(verdict="inconclusive")}),
        ("starved", {"diagnosis": diagnosis(starved_fraction=0.64)}),
        ("to blame", {"diagnosis": diagnosis(bottleneck="read")}),
        ("to blame", {"diagnosis": diagnosis(bottleneck=None)}),
        ("blame adds up to", {"stall_s": 0.012 * COUNT * 1.02}),
        ("batches observed", {"stages": {"read": stats(2), "wait": stats(12)}}),
    ],
)
def test_a_wrong_claim_makes_the_pipeline_off(name, changes):
    result = evaluated(pipeline(), **changes)
    assert result.outcome == "off"
    assert result.why == name
    assert not claim(name, **changes).holds


def test_blame_may_miss_one_percent_of_the_stall():
    assert claim("blame adds up to", stall_s=0.012 * COUNT * 1.009).holds


def test_bytes_and_requests_are_exact():
    invented = pipeline(counted=("bytes", "requests"))
    assert claim("bytes read", invented).expected == "10,000"
    short = replace(stats(2), bytes=9_999, requests=39)
    stages = {**profile().stages, "read": short}
    assert evaluated(invented, stages=stages).why == "bytes read, requests read"
    named = {"read": "it is a black box"}
    assert "bytes read" not in evaluated(invented, stages=stages, missing=named).why


def test_a_finding_that_must_be_there():
    invented = pipeline(finding="cpu-oversubscribed")
    assert claim("finding", invented).found == "nothing"
    assert not claim("finding", invented).holds
    found = Finding("cpu-oversubscribed", "", "", "")
    assert claim("finding", invented, findings=(found,)).holds


@pytest.mark.parametrize(
    ("setting", "proposed", "holds"),
    [("num_workers", "4", False), ("num_workers", "1", True), ("prefetch_factor", "4", True)],
)
def test_more_workers_are_not_advised_where_they_do_not_help(setting, proposed, holds):
    advice = Recommendation(setting, current="2", proposed=proposed, why="")
    invented = pipeline(more_workers=False)
    assert claim("advice", invented, recommendations=(advice,)).holds is holds
    assert evaluated(pipeline(), recommendations=(advice,)).outcome == "right", (
        "nothing was excluded"
    )


def test_a_run_that_was_not_starved_is_not_as_planned():
    assert as_planned(pipeline(), iterations(), 0.05)
    assert not as_planned(pipeline(), iterations(), 0.31), "60 % is not clearly above 31 %"
    on_time = [replace(one, delivered_s=one.asked_s + 0.0001) for one in iterations()]
    assert not as_planned(pipeline(), on_time, 0.05)
    fed = pipeline()
    fed = replace(fed, truth=replace(fed.truth, verdict="fed"))
    assert as_planned(fed, on_time, 0.05)
    assert not as_planned(fed, iterations(), 0.05)


def test_a_run_that_something_else_delayed_is_not_as_planned():
    delayed = [replace(one, delivered_s=one.delivered_s + 0.007) for one in iterations()]
    assert not as_planned(pipeline(), delayed, 0.05), "7 ms in main, but 6 in decode"
