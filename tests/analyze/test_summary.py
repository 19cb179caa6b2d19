"""A run told in pieces is the run told at once."""

from dataclasses import astuple, replace

import numpy as np
import pytest

from pipeprof.analyze.columns import Columns, slice_log
from pipeprof.analyze.profile import assemble
from pipeprof.analyze.summary import Summary
from tests.analyze.pipelines import inline_run, workers_run


@pytest.mark.parametrize("run", [workers_run, inline_run])
@pytest.mark.parametrize("cuts", [[20], [10, 30, 45]])
def test_a_run_that_was_folded_on_the_way_gives_the_same_profile(run, cuts):
    recording = run(60)
    whole = assemble(recording)
    earlier, start = Summary(recording.warmup_batches), 0
    for stop in cuts:
        earlier.add(Columns.of(slice_log(recording.batches, start, stop)))
        start = stop
    rest = slice_log(recording.batches, start, 60)
    parts = assemble(replace(recording, batches=rest), earlier=earlier)
    assert parts.measured_batches == whole.measured_batches
    assert parts.blame == pytest.approx(whole.blame)
    assert astuple(parts.throughput)[:3] == pytest.approx(astuple(whole.throughput)[:3])
    assert parts.throughput.interval == pytest.approx(whole.throughput.interval)
    assert parts.diagnosis.headline == whole.diagnosis.headline
    for name, stats in whole.stages.items():
        assert astuple(parts.stages[name])[:-1] == pytest.approx(astuple(stats)[:-1], abs=1e-12)
    assert parts.ceilings.keys() == whole.ceilings.keys()


def test_looking_at_a_profile_does_not_count_batches_twice():
    recording = workers_run(60)
    earlier = Summary(recording.warmup_batches)
    earlier.add(Columns.of(slice_log(recording.batches, 0, 30)))
    rest = replace(recording, batches=slice_log(recording.batches, 30, 60))
    assert assemble(rest, earlier=earlier) == assemble(rest, earlier=earlier)


def test_nothing_is_summed_of_nothing():
    summary = Summary(1)
    summary.add(Columns({"index": np.zeros(0)}))
    assert (summary.total, summary.measured, summary.stage_stats()) == (0, 0, {})
