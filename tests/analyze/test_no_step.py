"""A loop that does nothing with its batches is no accelerator that starves."""

from __future__ import annotations

import re

import pytest

from pipeprof.analyze.assemble import assemble
from pipeprof.model import Profile, Recording
from pipeprof.report.document.build import full_report
from pipeprof.report.terminal.render import print_document
from tests.analyze.pipelines import inline_run, workers_run
from tests.analyze.runs import seen


def of(recording: Recording) -> Profile:
    return assemble(recording)


def steps(*seconds: float) -> Recording:
    """Batches that take 10 ms, and steps of these lengths in turn."""
    run = inline_run(200, read_s=0.002, decode_s=0.005, step_s=0.0)
    asked, delivered, done, at = [], [], [], 0.0
    for number in range(200):
        asked.append(at)
        delivered.append(at + 0.010)
        at += 0.010 + seconds[number % len(seconds)]
        done.append(at)
    return seen(run, asked_s=tuple(asked), delivered_s=tuple(delivered), done_s=tuple(done))


@pytest.mark.parametrize(
    "recording",
    [
        inline_run(step_s=0.0),
        inline_run(step_s=60e-6),
        workers_run(step_s=0.0),
        steps(*[20e-6] * 99, 3e-3),  # the system took a core away
    ],
)
def test_a_loop_without_a_step_gets_the_loaders_rate_and_its_limit(recording):
    profile = of(recording)
    diagnosis = profile.diagnosis
    assert (diagnosis.has_step, diagnosis.verdict) == (False, "inconclusive")
    assert diagnosis.bottleneck == next(iter(profile.blame))
    rate = f"{profile.throughput.samples_per_s:,.0f}"
    assert diagnosis.headline.startswith(
        f"No training step: the loader gives {rate} samples/s; limited by {diagnosis.bottleneck}, "
    )
    assert diagnosis.more_batches is None, "no number of batches would settle it"
    assert "accelerator" not in profile.ceilings


@pytest.mark.parametrize(
    "recording",
    [
        inline_run(step_s=0.001),
        steps(150e-6),
        steps(10e-6, 10e-6, 10e-6, 10e-6, 5e-3),  # gradients are gathered over five batches
        steps(*[10e-6] * 19, 0.02),  # and over twenty, which are drawn at once
        inline_run(8, step_s=0.0),  # too few to say
        inline_run(read_s=5e-6, decode_s=5e-6, collate_s=0, other_s=0, step_s=50e-6),  # fed
    ],
)
def test_a_short_step_is_a_step(recording):
    assert of(recording).diagnosis.has_step


def test_advice_is_of_the_rate_within_what_the_machine_has():
    """Two cores, and workers that compute for half of their time."""
    advice = of(workers_run(200, cpu_share=0.5, step_s=0.0)).recommendations
    assert [(one.setting, one.proposed) for one in advice] == [("num_workers", "4")]
    assert "accelerator" not in advice[0].why
    assert advice[0].predicted_starved is advice[0].predicted_starved_interval is None
    used_up = of(workers_run(200, cpu_share=1.0, step_s=0.0)).recommendations
    assert [one.proposed for one in used_up] == [
        "batches that cost less to build, not more workers"
    ]


def test_no_cores_are_asked_for_that_no_machine_has():
    """A step of 0.2 ms on batches of 30 ms of CPU time: 142 cores."""
    short = of(workers_run(20, cpu_share=1.0, step_s=0.0002)).recommendations
    assert "cores" not in {one.setting for one in short}
    real = of(workers_run(20, cpu_share=1.0, step_s=0.002)).recommendations
    assert [one.proposed[:4] for one in real if one.setting == "cores"] == ["14.2"]


def test_the_report_speaks_of_no_starvation(capsys):
    print_document(full_report(of(workers_run(200, step_s=0.0))))
    said = capsys.readouterr().out
    assert "NO TRAINING STEP: the loader gives" in said
    assert not re.search(r"^ *starved +\d", said, re.MULTILINE)
