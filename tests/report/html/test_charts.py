"""The data of charts, their specifications and their descriptions."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pipeprof.model import BatchLog, Profile
from pipeprof.report.document.blocks import Chart, Document, KeyFigures, Table
from pipeprof.report.document.build import full_report
from pipeprof.report.document.charts import StageSpread, Stretch, Timeline
from pipeprof.report.document.journey import journey
from pipeprof.report.document.profile.stages import REST, mean_seconds
from pipeprof.report.document.profile.timeline import over_time, parts, timeline, typical
from pipeprof.report.html.charts.spec import spec_of
from pipeprof.report.html.charts.vega import Datum, Spec
from pipeprof.units import format_duration
from tests.report.html.pages import guided_sweep, log_of, many_workers
from tests.samples import (
    RECOMMENDATION,
    fed_profile,
    sample_profile,
)
from tests.stage_samples import stage_stats
from tests.sweep_samples import sample_conversion, sample_sweep


def rows(spec: Spec) -> list[Datum]:
    found: list[Datum] = spec["data"]["values"]
    return found


def chart(document: Document, name: str) -> Chart:
    return next(each for each in document.charts() if each.name == name)


def key_figure(document: Document, label: str) -> tuple[str, str]:
    found = next(b for b in document.sections[0].blocks if isinstance(b, KeyFigures))
    return next((each.value, each.remark) for each in found.figures if each.label == label)


def roofline(**ceilings: float) -> list[Datum]:
    """Return the rows of a roofline chart with these ceilings."""
    any_ = sample_profile().ceilings["workers"]
    found = {name: replace(any_, samples_per_s=rate) for name, rate in ceilings.items()}
    return rows(spec_of(chart(full_report(sample_profile(ceilings=found)), "roofline").data))


def test_the_lowest_ceiling_stands_out_and_what_is_far_above_is_cut_off() -> None:
    found = roofline(workers=50.0, storage=900.0, accelerator=100.0)
    assert [(row["name"], row["tone"]) for row in found] == [
        ("workers", "worst"), ("accelerator", "demand"), ("storage", ""),
    ]  # fmt: skip
    assert [row["cut"] for row in found] == [False, False, True]
    assert found[2]["label"] == "900 »"
    assert "9.00× of the accelerator's demand" in found[2]["tip"]


def test_an_accelerator_that_is_the_lowest_ceiling_is_no_bottleneck() -> None:
    found = roofline(accelerator=100.0, workers=500.0)
    assert [row["tone"] for row in found] == ["demand", ""]


@pytest.mark.parametrize(
    ("profile", "says"),
    [
        (sample_profile(), "each part alone would keep up, and yet the accelerator waits."),
        (fed_profile(), "nothing slows the accelerator down."),
    ],
)
def test_a_stall_is_reported_even_if_each_part_would_keep_up(profile: Profile, says: str) -> None:
    ceilings = {name: profile.ceilings[name] for name in ("storage-bandwidth", "accelerator")}
    view = full_report(replace(profile, ceilings=ceilings))
    assert chart(view, "roofline").description.endswith(says)


def test_a_roofline_without_a_demand_claims_none() -> None:
    assert all("demand" not in row["tip"] for row in roofline(workers=50.0, main=60.0))


def test_an_inexact_prediction_is_drawn_as_a_range() -> None:
    advice = replace(RECOMMENDATION, predicted_samples_per_s=None, interval=(61_000.0, 99_000.0))
    found = chart(full_report(sample_profile(recommendations=(advice,))), "throughput")
    now, then = rows(spec_of(found.data))
    assert (now["known"], now["label"]) == (True, "60,235")
    assert (then["known"], then["low"], then["high"]) == (False, 61_000.0, 99_000.0)
    assert "61,000–99,000; this run gives no exact figure" in found.description


def test_the_parts_of_a_journey_add_up_to_it() -> None:
    stages = sample_profile().stages
    found = mean_seconds(journey(stages, 2))
    apart = ("fetch", "collate", "transfer", "reorder", "ready", "step")
    assert sum(found.values()) == pytest.approx(sum(stages[name].mean_s for name in apart))
    assert found[REST] == pytest.approx(0.0326 - 0.0021 - 0.0284 - 0.0019)
    assert not {"fetch", "wait", "serialise"} & found.keys()


def test_an_unknown_stage_is_no_part_of_a_journey() -> None:
    stages = {"fetch": stage_stats(123.0, source="unknown"), "step": stage_stats(10.0)}
    document = full_report(sample_profile(stages=stages, workers=()))
    assert "journey" not in {each.name for each in document.charts()}
    points = spec_of(chart(document, "spread").data)
    assert {row["name"] for row in rows(points)} == {"step"}


def test_an_axis_ends_at_the_largest_float() -> None:
    assert spec_of(StageSpread({"step": replace(stage_stats(10.0), p99_s=1.7e308)}))


def spans(spec: Spec, kind: str, main: bool) -> list[tuple[float, float]]:
    return [
        (row["x"], row["x2"]) for row in rows(spec)
        if row["kind"] == kind and (row["y"] < 1) == main
    ]  # fmt: skip


def length(found: list[tuple[float, float]]) -> float:
    return sum(end - begin for begin, end in found)


def test_the_timeline_holds_each_wait_and_each_batch_once() -> None:
    profile = sample_profile(batches=log_of(2, 60))
    log = profile.batches
    spec = spec_of(Timeline(profile.batches, Stretch(0, 60, 0.4), 4))
    waited = sum(d - a for a, d in zip(log.asked_s, log.delivered_s, strict=True))
    assert length(spans(spec, "awaited", main=True)) == pytest.approx(waited, abs=1e-4)
    assert length(spans(spec, "step", main=True)) == pytest.approx(0.6, abs=1e-4)
    made = length(spans(spec, "fetch", main=False)) + length(spans(spec, "awaited", main=False))
    assert 60 * 0.034 - 0.034 < made < 60 * 0.037, "but for what was made before it begins"


def test_a_worker_is_marked_only_while_main_waits_for_it() -> None:
    profile = sample_profile(batches=log_of(2, 60))
    spec = spec_of(Timeline(profile.batches, Stretch(10, 50, 0.4), 4))
    waits = spans(spec, "awaited", main=True)
    marked = spans(spec, "awaited", main=False)
    assert marked
    for begin, end in marked:
        assert any(a - 1e-5 <= begin and end <= b + 1e-5 for a, b in waits)


def test_batches_fetched_for_later_are_drawn_to_the_end_of_a_stretch() -> None:
    profile = many_workers()
    spec = spec_of(Timeline(profile.batches, Stretch(500, 820, 0.0), 128))
    whole = next(each["value"] for each in spec["params"] if each["name"] == "to")
    assert max(end for _, end in spans(spec, "fetch", main=False)) > 0.95 * whole
    assert max(row["x2"] for row in rows(spec)) <= whole + 1e-6
    assert len(rows(spec)) < 4000, "a page stays small"


def test_a_stretch_waits_as_much_as_the_whole() -> None:
    fed, starved = log_of(5, 300), log_of(2, 100)
    shift = fed.done_s[-1] - starved.asked_s[0]
    both = BatchLog(
        asked_s=fed.asked_s + tuple(at + shift for at in starved.asked_s),
        delivered_s=fed.delivered_s + tuple(at + shift for at in starved.delivered_s),
        done_s=fed.done_s + tuple(at + shift for at in starved.done_s),
    )
    found = typical(both, 60)
    assert found
    assert 240 < found.first < 300, "part fed, part starved, as the whole is"
    assert typical(BatchLog(), 60) is None
    at_once = replace(log_of(1, 1), asked_s=(1.0,), delivered_s=(1.0,), done_s=(1.0,))
    assert typical(at_once, 60) is None


def with_pause(log: BatchLog, place: int, pause_s: float) -> BatchLog:
    """Return ``log`` with a pause after the batch at ``place``; later batches are shifted."""
    moved = {
        name: tuple(
            at + pause_s * (number > place or (number == place and name == "done_s"))
            for number, at in enumerate(getattr(log, name))
        )
        for name in ("asked_s", "delivered_s", "done_s")
    }
    paused = tuple(pause_s if number == place else None for number in range(len(log.asked_s)))
    return replace(log, **moved, pause_s=paused)


def test_a_pause_is_no_part_of_its_step() -> None:
    log = with_pause(log_of(2, 60), 30, 5.0)
    spec = spec_of(Timeline(log, Stretch(0, 60, 0.4), 4))
    assert length(spans(spec, "pause", main=True)) == pytest.approx(5.0, abs=1e-4)
    assert length(spans(spec, "step", main=True)) == pytest.approx(0.6, abs=1e-4)


def test_a_stretch_without_a_pause_is_shown_if_there_is_one() -> None:
    found = typical(with_pause(log_of(2, 300), 30, 5.0), 60)
    assert found
    assert found.first > 30


def test_the_pace_over_time_leaves_pauses_out() -> None:
    plain, paused = parts(log_of(2, 300)), parts(with_pause(log_of(2, 300), 30, 5.0))
    assert [each.samples_per_s for each in paused] == pytest.approx(
        [each.samples_per_s for each in plain]
    )


def test_the_longest_waits_come_first() -> None:
    log = log_of(2, 40)
    table = next(b for b in timeline(sample_profile(batches=log)).blocks if isinstance(b, Table))
    waits = sorted((d - a for a, d in zip(log.asked_s, log.delivered_s, strict=True)), reverse=True)
    texts = [row.cells[2].text for row in table.rows]
    assert texts == [format_duration(wait) for wait in waits[:8]]
    assert {row.cells[3].text for row in table.rows} == {"34.0 ms"}


def test_the_pace_over_time_counts_delivered_samples() -> None:
    found = parts(log_of(2, 400))
    assert len(found) == 100
    # of two workers, each 34 ms: 34 batches of 32 samples in 17 × 34 ms
    assert found[50].samples_per_s == pytest.approx(2 * 32 / 0.034, rel=0.1)
    assert found[50].wait_share == pytest.approx(1 - 0.010 / 0.017, rel=0.15)
    log = log_of(2, 30)
    assert parts(log)[-1].end_s == pytest.approx(log.done_s[-1] - log.asked_s[0]), "to the end"
    assert over_time(log_of(2, 4), Stretch(0, 4, 0.4)) == []


def test_where_samples_were_not_counted_no_pace_is_drawn() -> None:
    log = replace(log_of(2, 100), samples=())
    assert [each.name for each in over_time(log, Stretch(0, 60, 0.4))] == ["waiting"]


def test_key_figures_of_a_run_without_batches_are_unknown() -> None:
    view = full_report(sample_profile(measured_batches=0))
    for label in ("starved", "throughput", "bottleneck"):
        assert key_figure(view, label)[0] == "unknown"


def test_the_bottleneck_and_its_share_of_the_stall() -> None:
    profile = sample_profile()
    unsure = replace(profile.diagnosis, verdict="inconclusive", bottleneck=None)
    slow = replace(profile.diagnosis, bottleneck="storage-latency")
    assert key_figure(full_report(profile), "bottleneck") == ("decode", "82.5 % of the stall")
    assert key_figure(full_report(fed_profile()), "bottleneck")[0] == "none"
    found = key_figure(full_report(replace(profile, diagnosis=unsure)), "bottleneck")
    assert found == ("unknown", "too little was measured")
    found = key_figure(full_report(replace(profile, diagnosis=slow)), "bottleneck")
    assert found == ("storage-latency", "6.1 % of the stall"), "that of read"


def test_all_64_workers_are_drawn_and_the_slow_one_is_named() -> None:
    found = chart(full_report(many_workers()), "workers")
    assert len({row["name"] for row in rows(spec_of(found.data))}) == 64
    assert found.description.startswith("Worker #41 takes 1.9")


def test_a_sweep_draws_what_it_measured_and_what_it_predicted() -> None:
    sweep = guided_sweep()
    found = rows(spec_of(chart(full_report(sweep), "settings").data))
    measured = [row for row in found if row["known"] == "measured"]
    assert [row["samples"] for row in measured] == [trial.samples_per_s for trial in sweep.trials]
    predicted = {(row["workers"], row["samples"]) for row in found if row["known"] == "predicted"}
    tried = {
        (trial.config.num_workers, trial.predicted_samples_per_s)
        for trial in sweep.trials
        if trial.predicted_samples_per_s
    }
    assert predicted == tried | {(each.num_workers, each.samples_per_s) for each in sweep.untried}


def trials(document: Document) -> Table:
    section = next(section for section in document.sections if section.name == "trials")
    return next(block for block in section.blocks if isinstance(block, Table))


def test_the_chosen_and_the_fastest_trials_are_marked() -> None:
    found = [row.cells[1].text for row in trials(full_report(sample_sweep())).rows]
    assert found == ["", "", "chosen", "", "", "chosen", "", "fastest"]


def test_columns_are_sorted_by_figures_and_hold_what_a_sample_costs() -> None:
    table = trials(full_report(sample_conversion()))
    titles = [column.title for column in table.columns]
    assert {"read a sample", "moved a sample", "CPU a sample", "decode a sample"} <= set(titles)
    moved = [row.cells[titles.index("moved a sample")] for row in table.rows]
    assert [cell.sort for cell in moved] == [186.0, 41.5, 231.0, None, 186.0]
    assert moved[3].text == "unknown"
