"""What a profile says of a run with pauses, and that they neither hide nor invent starvation."""

from dataclasses import replace

import pytest

from pipeprof.analyze.assemble import assemble
from pipeprof.analyze.profile.batch_table import Columns, slice_log
from pipeprof.analyze.profile.run_summary import Summary
from pipeprof.measure.clock import FakeClock
from pipeprof.measure.pauses import NamedInterval
from pipeprof.measure.recorder import Recorder
from pipeprof.model import BY_LENGTH, LoaderConfig, PauseKind, Recording
from tests.analyze.pipelines import begun, recording_of


def starving(
    batches: int, every: int, pause_s: float, named: str = "", step_s: float = 0.003
) -> Recording:
    """One worker that takes 19 ms a batch and makes two ahead: 16 of 19 ms are waited for."""
    clock = FakeClock()
    recorder = Recorder(clock)
    turn = begun(recorder)
    free_s, handed_out_s = 0.0, [0.0] * 2
    for number in range(batches):
        turn.ask()
        start = max(free_s, handed_out_s[number])
        free_s = start + 0.019
        clock.sleep(free_s - clock.now())
        turn.deliver({
            "worker": 0, "samples": 4, "fetch_start_s": start, "fetch_end_s": free_s,
            "sent_s": free_s, "received_s": clock.now(), "arrived_s": clock.now(),
            "read_s": 0.0, "decode_s": 0.0, "transform_s": 0.0, "collate_s": 0.0,
        })  # fmt: skip
        handed_out_s.append(clock.now())
        clock.sleep(step_s)
        if number % every == every - 1:
            begin_s = clock.now()
            clock.sleep(pause_s)
            if named:
                turn.add_note(NamedInterval(begin_s, clock.now(), PauseKind(named, "named")))
    turn.leave()
    config = LoaderConfig(1, prefetch_factor=2, batch_size=4, kind="map")
    recording = recording_of(recorder, config, warmup=2)
    return replace(recording, pause_kinds=tuple(recorder.pauses.kinds))


@pytest.mark.parametrize("named", ["", "checkpoint"])
def test_a_pause_neither_hides_nor_invents_starvation(named: str) -> None:
    profile = assemble(starving(380, 38, 1.3, named))
    assert profile.diagnosis.starved_fraction == pytest.approx(16 / 19, abs=0.005)
    assert profile.diagnosis.starved_interval == pytest.approx((16 / 19, 16 / 19), abs=0.01)
    assert profile.ceilings["accelerator"].samples_per_s == pytest.approx(4 / 0.003)
    assert profile.stages["step"].mean_s == pytest.approx(0.003)
    assert [each.setting for each in profile.recommendations] == ["num_workers"]
    pauses = profile.pauses
    assert pauses is not None
    assert (pauses.count, pauses.rested_batches) == (10, 18)
    assert pauses.total_s == pytest.approx(13.0, rel=1e-3)
    assert pauses.longest_s == pytest.approx(1.3, rel=1e-3)
    assert pauses.share == pytest.approx(0.65, abs=0.02)
    assert profile.stages["pause"].mean_s == pytest.approx(1.3, rel=1e-3)
    assert profile.stages["pause"].source == ("measured" if named else "estimated")
    (kind,) = pauses.kinds
    assert kind.kind == PauseKind(named, "named" if named else "length")
    assert profile.warmup_batches == 2
    assert profile.measured_batches == 380 - 2 - 10 - 18
    assert pauses.as_steps.starved_fraction == pytest.approx(0.3, abs=0.02)
    assert pauses.as_steps.starved_interval[1] < 16 / 19


def test_a_fed_loader_is_fed_with_pauses_too() -> None:
    profile = assemble(starving(380, 38, 30.0, step_s=0.030))
    assert profile.diagnosis.verdict == "fed"
    assert profile.pauses is not None
    assert profile.pauses.as_steps.verdict == "fed"


def test_a_run_without_pauses_says_nothing_of_them() -> None:
    profile = assemble(starving(380, 1000, 1.3))
    assert profile.pauses is None
    assert "pause" not in profile.stages
    assert profile.batches.pause_s == profile.batches.rested == ()


def test_the_batches_kept_say_which_were_pauses_and_which_rested() -> None:
    log = assemble(starving(100, 38, 1.3)).batches
    assert [place for place, value in enumerate(log.pause_s) if value] == [37, 75]
    assert [place for place, value in enumerate(log.rested) if value] == [38, 39, 76, 77]
    assert log.pause_kind[37] == BY_LENGTH


def test_a_run_that_was_folded_gives_the_same_pauses() -> None:
    recording = starving(760, 38, 1.3)
    whole = assemble(recording)
    earlier = Summary(recording.warmup_batches)
    for start, stop in ((0, 250), (250, 500)):
        earlier.add(Columns.of(slice_log(recording.batches, start, stop)))
    rest = slice_log(recording.batches, 500, 760)
    parts = assemble(replace(recording, batches=rest), earlier=earlier)
    assert parts.pauses is not None
    assert whole.pauses is not None
    assert (parts.pauses.count, parts.pauses.rested_batches) == (20, whole.pauses.rested_batches)
    assert parts.pauses.total_s == pytest.approx(whole.pauses.total_s)
    assert parts.pauses.as_steps.starved_fraction == pytest.approx(
        whole.pauses.as_steps.starved_fraction
    )
    assert parts.diagnosis.starved_fraction == pytest.approx(whole.diagnosis.starved_fraction)
