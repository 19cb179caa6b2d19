"""A run told in pieces is the run told at once."""

from dataclasses import astuple, fields, replace

import numpy as np
import pytest

from pipeprof.analyze.assemble import assemble
from pipeprof.analyze.profile.batch_table import Columns, slice_log
from pipeprof.analyze.profile.run_summary import Summary
from pipeprof.measure.rows import LOOP_FIELDS
from pipeprof.model import UNWATCHED, BatchLog, Recording
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
    # the last batch of a piece is not known to be followed by one that is waited for
    assert parts.blame == pytest.approx(whole.blame, abs=0.0011 * len(cuts))
    assert sum(parts.blame.values()) == pytest.approx(sum(whole.blame.values()))
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


CLOCKED = (*LOOP_FIELDS, "samples", "epoch_batches")


def only_clocked(recording: Recording, first: int, longer_s: float = 0.0) -> Recording:
    """Of the batches from ``first`` on no record was asked for, and each was waited for so much
    longer."""
    log = recording.batches
    unseen = len(log.index) - first
    columns = {
        field.name: (*getattr(log, field.name)[:first], *[None] * unseen)
        for field in fields(BatchLog)
        if field.name not in CLOCKED and getattr(log, field.name)
    }
    columns["worker"] = (*log.worker[:first], *[UNWATCHED] * unseen)
    for name, least in (("asked_s", 0), ("delivered_s", 1), ("done_s", 1)):
        columns[name] = tuple(
            moment + longer_s * max(0, place - first + least)
            for place, moment in enumerate(getattr(log, name))
        )
    return replace(recording, batches=replace(log, **columns))


def test_batches_that_are_only_clocked_count_for_all_that_clocks_tell():
    whole, profile = assemble(inline_run(60)), assemble(only_clocked(inline_run(60), 40))
    assert profile.measured_batches == whole.measured_batches
    assert profile.diagnosis.starved_fraction == whole.diagnosis.starved_fraction
    assert profile.diagnosis.headline == whole.diagnosis.headline
    assert astuple(profile.throughput)[:3] == pytest.approx(astuple(whole.throughput)[:3])
    assert profile.stages["step"] == whole.stages["step"]
    assert profile.blame == pytest.approx(whole.blame), "others waited for the same"
    assert profile.stages["decode"].count == 39
    assert profile.batches.index == tuple(range(40)), "of which there is more to say"


def test_what_they_stalled_far_more_than_those_that_were_watched_is_unknown():
    """Watched batches waited 15 ms each; a batch that was not watched waited 60 ms more."""
    profile = assemble(only_clocked(inline_run(61), 31, longer_s=0.060))
    assert profile.stall_s == pytest.approx(60 * 0.015 + 30 * 0.060)
    assert sum(profile.blame.values()) == pytest.approx(profile.stall_s)
    assert sum(profile.awaited_in.values()) == pytest.approx(profile.stall_s)
    assert profile.blame["decode"] == pytest.approx(0.008 * 120)
    assert profile.blame["unknown"] == pytest.approx(60 * 0.015 + 30 * 0.060 - 0.015 * 120)


def test_of_a_run_of_which_nothing_was_watched_the_stall_is_known_and_not_why():
    profile = assemble(only_clocked(inline_run(60), 0))
    assert profile.diagnosis.verdict == "starved"
    assert profile.blame == pytest.approx({"unknown": profile.stall_s})
    assert profile.diagnosis.bottleneck is None
