"""The stage that limits a loader which works in threads, on made-up runs: nothing is timed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pipeprof.analyze.assemble import assemble
from pipeprof.measure.clock import FakeClock
from pipeprof.measure.recorder import Recorder
from pipeprof.model import TRAINING_LOOP, MainProcess, PipelineStage, Profile, Recording
from tests.analyze.pipelines import begun, inline_run

BATCHES, SAMPLES = 101, 8


def threaded_run(*stages: PipelineStage, wait_s: float, step_s: float, cpu: float = 0.1) -> Profile:
    """A loop of which only waits and steps are known. ``cpu``: cores that the process uses."""
    clock = FakeClock(100.0)
    recorder = Recorder(clock)
    turn = begun(recorder)
    for _ in range(BATCHES):
        turn.ask()
        clock.sleep(wait_s)
        turn.deliver({"samples": SAMPLES})
        clock.sleep(step_s)
    turn.leave()
    bare: Recording = inline_run(batches=1)
    wall_s = BATCHES * (wait_s + step_s)
    return assemble(
        replace(
            bare, batches=recorder.log(), warmup_batches=1, pipeline=stages,
            main=MainProcess(cpu_s=cpu * wall_s, wall_s=wall_s),
        )
    )  # fmt: skip


def stage(name: str = "decode", busy: float = 0.96, threads: int = 2, **changes: Any) -> Any:
    """A mapper that is busy for this share of 1 s, and computes a hundredth of that."""
    busy_s = busy * threads
    values = {
        "library": "torchdata.nodes", "kind": "ParallelMapper", "items": 800, "busy_s": busy_s,
        "elapsed_s": 1.0, "concurrency": threads, "cpu_s": 0.01 * busy_s,
    }  # fmt: skip
    return PipelineStage(name, **(values | changes))


def test_the_busiest_stage_is_the_cause_the_ceiling_and_what_to_change() -> None:
    profile = threaded_run(stage(), stage("pack", 0.1, 1), wait_s=0.009, step_s=0.001)
    assert profile.diagnosis.verdict == "starved"
    assert profile.diagnosis.bottleneck == "pipeline"
    assert "its stage decode is busy 96 % of the time" in profile.diagnosis.headline
    assert list(profile.blame) == list(profile.awaited_in) == ["pipeline"]
    assert profile.blame["pipeline"] == pytest.approx(profile.stall_s)
    rate = profile.throughput.samples_per_s
    assert next(iter(profile.ceilings)) == "pipeline"
    assert profile.ceilings["pipeline"].samples_per_s == pytest.approx(rate / 0.96)
    (finding,) = [each for each in profile.findings if each.code == "pipeline-stage-bound"]
    assert "decode is busy 96 % of the time of its 2 threads" in finding.evidence
    assert profile.diagnosis.disagreements == ()
    (advice,) = profile.recommendations
    assert advice.setting == "num_workers of decode"
    assert (advice.current, advice.proposed) == ("2", "8")
    assert advice.code == "ParallelMapper(…, decode, num_workers=8)"
    assert advice.predicted_samples_per_s == pytest.approx(4 * rate)


def test_the_promise_ends_at_the_next_busiest_stage() -> None:
    profile = threaded_run(stage(), stage("pack", 0.5, 1), wait_s=0.009, step_s=0.001)
    (advice,) = profile.recommendations
    assert advice.proposed == "4"
    rate = profile.throughput.samples_per_s
    assert advice.predicted_samples_per_s == pytest.approx(2 * rate)
    assert "The next limit would be the stage pack" in advice.why


def test_the_promise_ends_at_the_training_step() -> None:
    profile = threaded_run(stage(), wait_s=0.005, step_s=0.005)
    (advice,) = profile.recommendations
    rate = profile.throughput.samples_per_s
    assert advice.predicted_samples_per_s == pytest.approx(2 * rate, rel=0.01)
    assert "The next limit would be the accelerator" in advice.why


def test_threads_that_take_turns_in_python_are_promised_nothing() -> None:
    computing = stage(cpu_s=0.97)  # two threads, busy all the time, compute on one core together
    profile = threaded_run(computing, wait_s=0.009, step_s=0.001, cpu=1.0)
    (advice,) = profile.recommendations
    assert advice.predicted_samples_per_s is None
    assert "Threads compute in Python one at a time" in advice.why
    (finding,) = [each for each in profile.findings if each.code == "pipeline-stage-bound"]
    assert "More threads are not known to help" in finding.fix


def test_threads_that_do_compute_on_several_cores_may_use_all_of_them() -> None:
    native = stage(cpu_s=1.9)
    assert native.concurrency == 2
    profile = threaded_run(native, wait_s=0.009, step_s=0.001, cpu=1.9)
    (advice,) = profile.recommendations
    assert advice.predicted_samples_per_s is None, "both cores of this machine are in use"
    assert advice.proposed == "cheaper work, or more cores"


def test_a_stage_of_unknown_computing_is_held_to_what_the_process_computes() -> None:
    profile = threaded_run(stage(cpu_s=None), wait_s=0.009, step_s=0.001, cpu=0.95)
    (advice,) = profile.recommendations
    assert advice.predicted_samples_per_s is None


def test_stages_that_share_threads_are_the_limit_together() -> None:
    shared = {"pool": "reading threads", "pool_size": 2, "library": "grain", "kind": "Map"}
    stages = (stage("read", 0.4, **shared), stage("decode", 0.55, **shared))
    profile = threaded_run(*stages, wait_s=0.009, step_s=0.001)
    assert "its stage decode is busy 95 % of the time" in profile.diagnosis.headline
    (advice,) = profile.recommendations
    assert advice.code is not None
    assert "num_threads=8" in advice.code


def test_a_stage_in_the_training_loop_has_only_the_time_of_its_waits() -> None:
    inline = stage(
        kind="Mapper", threads=1, busy=0.49, pool=TRAINING_LOOP, pool_size=1, elapsed_s=1.0
    )
    profile = threaded_run(inline, wait_s=0.005, step_s=0.005)
    assert profile.diagnosis.bottleneck == "pipeline"
    (advice,) = profile.recommendations
    assert advice.code == 'ParallelMapper(…, decode, num_workers=2, method="thread")'


def test_nothing_is_blamed_where_no_stage_is_busy() -> None:
    profile = threaded_run(stage(busy=0.6), wait_s=0.009, step_s=0.001)
    assert profile.diagnosis.bottleneck is None
    assert list(profile.blame) == ["unknown"]
    assert not [each for each in profile.findings if each.code == "pipeline-stage-bound"]


def test_a_fed_loop_has_no_finding_though_a_stage_is_busy() -> None:
    profile = threaded_run(stage(), wait_s=0.0, step_s=0.01)
    assert profile.diagnosis.verdict == "fed"
    assert profile.diagnosis.bottleneck == "accelerator"
    assert profile.recommendations == ()
    assert not [each for each in profile.findings if each.code == "pipeline-stage-bound"]


def test_a_source_whose_queue_is_empty_is_the_limit() -> None:
    source = stage(
        "read", kind="source", library="spdl", busy_s=None, cpu_s=None, threads=1, ready_share=0.02
    )
    profile = threaded_run(source, stage(busy=0.2), wait_s=0.009, step_s=0.001)
    assert "its stage read" in profile.diagnosis.headline
    (advice,) = profile.recommendations
    assert advice.proposed == "its work in a stage with several threads"
    assert advice.predicted_samples_per_s is None


def test_what_the_library_says_of_its_waits_counts_where_nothing_is_timed() -> None:
    waits = {"library": "ray.data", "kind": "IterationStage", "items": None, "cpu_s": None}
    stages = (
        stage("production_wait", waited_s=0.8, busy_s=None, concurrency=None, **waits),
        stage("collate", waited_s=0.1, busy_s=0.1, concurrency=None, **waits),
    )
    profile = threaded_run(*stages, wait_s=0.009, step_s=0.001)
    assert profile.diagnosis.bottleneck == "pipeline"
    (advice,) = profile.recommendations
    assert "dataset.stats()" in advice.why
