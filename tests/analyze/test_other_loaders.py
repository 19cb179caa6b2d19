"""A loop that waits for two loaders in each step: the accelerator waits for both."""

from dataclasses import replace

import pytest

from pipeprof.analyze.assemble import assemble
from pipeprof.model import OtherLoader
from tests.analyze.pipelines import workers_run
from tests.analyze.runs import epochs, seen


def zipped(others_s, received_s=0.001, **times):
    """Of each step, ``others_s`` are a wait for the loader ``labels``."""
    run = seen(workers_run(**times), others_s=others_s, others_received_s=received_s)
    return replace(run, other_loaders=(OtherLoader("labels", None),))


def test_the_accelerator_waits_for_all_of_them():
    alone, both = assemble(workers_run(step_s=0.006)), assemble(zipped(0.004, step_s=0.006))
    assert both.throughput == alone.throughput
    assert both.stages["step"].mean_s == pytest.approx(0.002)
    batches = alone.measured_batches
    assert both.stall_s == pytest.approx(alone.stall_s + 0.004 * batches)
    assert both.blame["other-loaders"] == pytest.approx(0.004 * batches)
    assert sum(both.blame.values()) == pytest.approx(both.stall_s)
    assert both.blame["fetch"] == pytest.approx(alone.blame["fetch"])
    assert both.ceilings["accelerator"].samples_per_s == pytest.approx(4 / 0.002)


def test_a_busy_accelerator_waits_for_none_of_them():
    """It is idle for half of the waits, as far as it is observed."""
    run = workers_run(step_s=0.006)
    half = tuple((came - asked) / 2 for asked, came in waits_of(run))
    both = assemble(seen(zipped(0.004, step_s=0.006), device_wait_s=half))
    alone = assemble(seen(run, device_wait_s=half))
    assert both.stall_s == pytest.approx(alone.stall_s + 0.002 * alone.measured_batches)
    assert sum(both.blame.values()) == pytest.approx(both.stall_s)
    cycle_s = both.wall_s / both.measured_batches
    step_s = cycle_s - both.stall_s / both.measured_batches
    assert both.ceilings["accelerator"].samples_per_s == pytest.approx(4 / step_s)


def waits_of(run):
    return zip(run.batches.asked_s, run.batches.delivered_s, strict=True)


def test_what_is_promised_needs_the_others_to_be_as_fast():
    profile = assemble(zipped(0.004, step_s=0.006))
    advice, *_ = profile.recommendations
    assert advice.why.endswith("It helps only as far as labels can keep up")
    # now 4 / 0.015; the loop would still receive the batches of both, and train
    assert 4 / 0.006 < advice.predicted_samples_per_s < 4 / 0.00325
    (note,) = profile.diagnosis.disagreements
    assert "of the wait was for labels, in the same steps" in note


def test_so_it_does_where_the_others_are_ready_now_and_slower_than_the_step():
    run = workers_run(step_s=0.006)
    for made_every_s, needed in ((0.010, True), (0.004, False)):
        other = OtherLoader("labels", made_every_s)
        advice, *_ = assemble(replace(run, other_loaders=(other,))).recommendations
        assert ("as far as labels can keep up" in advice.why) == needed


def test_what_an_epoch_s_start_costs_does_not_depend_on_them():
    run = replace(zipped(0.004, step_s=0.006), epochs=epochs(3, 1.5, 0.2))
    start, *_ = assemble(run).recommendations
    assert start.setting == "persistent_workers"
    assert "keep up" not in start.why


def test_no_cheaper_batches_are_advised_where_it_is_the_others_that_are_slow():
    profile = assemble(zipped(0.040, step_s=0.042, fetch_s=0.005))
    assert profile.diagnosis.bottleneck == "other-loaders"
    assert {each.setting for each in profile.recommendations} <= {"num_workers"}


def test_where_it_waits_for_the_others_alone_nothing_is_advised_here():
    profile = assemble(zipped(0.040, step_s=0.042, fetch_s=0.001))
    assert profile.diagnosis.verdict == "starved"
    assert "of that wait was for other loaders (labels)" in profile.diagnosis.headline
    assert profile.recommendations == ()
    assert profile.diagnosis.bottleneck == "other-loaders"
