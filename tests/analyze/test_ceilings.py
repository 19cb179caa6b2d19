"""The roofline: the most that each part allows, from runs whose figures are made up."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pipeprof.analyze.assemble import assemble
from pipeprof.model import BatchLog, MainProcess, Recording
from tests.analyze.pipelines import workers_run
from tests.analyze.runs import seen


def ceilings(recording: Recording) -> dict[str, float]:
    """Batches/s, of batches of 4."""
    found = assemble(recording).ceilings
    rates = [each.samples_per_s for each in found.values()]
    assert rates == sorted(rates), "the bottleneck first"
    return {name: each.samples_per_s / 4 for name, each in found.items()}


def test_one_thread_receives_what_all_workers_make():
    assert ceilings(workers_run())["transfer"] == pytest.approx(1 / 0.00025)


def test_waiting_for_the_interpreter_of_a_worker_that_never_rests_limits_nothing():
    """Main is seen to take 10 ms to receive a batch, and computes for 0.6 of them in all."""
    run = workers_run(workers=1, fetch_s=0.012, transfer_s=0.04, step_s=0.0001, cpu_share=0.95)
    waits, computes = MainProcess(cpu_s=0.05, wall_s=1.0), MainProcess(cpu_s=0.9, wall_s=1.0)
    assert ceilings(seen(run, waits))["transfer"] == pytest.approx(1 / (0.05 * 0.012), rel=0.02)
    assert ceilings(seen(run, computes))["transfer"] == pytest.approx(1 / 0.010)
    rests = seen(run, waits, cpu_s=0.002)
    assert ceilings(rests)["transfer"] == pytest.approx(1 / 0.010), "it holds up nobody"


def test_picking_indices_comes_on_top_of_receiving():
    found = ceilings(seen(workers_run(), sampler_s=0.001))
    assert found["main"] == pytest.approx(1 / 0.00125)


def test_a_thread_that_pins_also_receives_and_the_training_process_does_not():
    recording = workers_run()
    log = recording.batches
    pinned = tuple(moment + 0.002 for moment in log.arrived_s)
    later = tuple(moment + 0.002 for moment in log.delivered_s)
    found = ceilings(seen(recording, pinned_s=pinned, delivered_s=later, sampler_s=0.001))
    assert found["pin"] == pytest.approx(1 / 0.00225)
    assert found["main"] == pytest.approx(1 / 0.001)


def test_copies_to_the_device():
    assert ceilings(seen(workers_run(), h2d_s=0.004))["h2d"] == pytest.approx(1 / 0.004)


def test_cores_are_counted_less_the_training_process_and_shared_by_ranks():
    recording = workers_run()
    assert ceilings(recording)["worker-cpu"] == pytest.approx(2 / 0.006)
    busy = replace(recording, main=MainProcess(cpu_s=5.0, wall_s=10.0))
    assert ceilings(busy)["worker-cpu"] == pytest.approx(1.5 / 0.006)
    four = replace(busy, environment=replace(busy.environment, cores=8, ranks=4))
    assert ceilings(four)["worker-cpu"] == pytest.approx(1.5 / 0.006)
    assert assemble(four).ceilings["worker-cpu"].formula == (
        "1.5 cores × 4 samples / 6.00 ms of CPU a batch; "
        "8 cores shared by 4 ranks; 0.5 busy with the training process"
    )


def test_without_a_batch_nothing_is_said():
    assert assemble(replace(workers_run(), batches=BatchLog())).ceilings == {}
