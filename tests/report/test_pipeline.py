"""The stages of a loader that works in threads: a row each, and figures for trackers."""

from __future__ import annotations

from dataclasses import replace

from pipeprof.report.document.build import first_screen
from pipeprof.report.metrics import metrics
from pipeprof.report.terminal.render import render_terminal
from tests.report.full import full_text, section
from tests.samples import sample_pipeline, sample_profile

PROFILE = sample_profile(pipeline=sample_pipeline())


def test_each_stage_has_a_row_with_what_is_known_of_it() -> None:
    heading, _, source, decode, pack, *legend = section(
        full_text(PROFILE), "Pipeline stages"
    ).splitlines()
    assert heading.endswith("spdl; from the sources to the batch")
    assert source.split()[:5] == ["read_rows", "*", "source", "1", "800"]
    assert source.count("unknown") == 3, "its time, what it computed, and its share"
    assert decode.split()[:6] == ["decode", "pipe", "2", "800", "24.0", "ms"]
    assert "96.0 %" in decode
    assert "unknown" in pack, "what it computed"
    assert any("by the library's own statistics" in line for line in legend)


def test_a_data_loader_has_no_such_table() -> None:
    assert "Pipeline stages" not in full_text(sample_profile())


def test_the_first_screen_names_the_library_as_the_loader() -> None:
    assert "spdl, 3 pipeline stages" in render_terminal(first_screen(PROFILE))


def test_waits_by_the_library_are_shown_where_it_keeps_them() -> None:
    stages = tuple(replace(stage, waited_s=1.25) for stage in sample_pipeline())
    assert "1.25 s" in section(full_text(sample_profile(pipeline=stages)), "Pipeline stages")


def test_metrics_hold_what_is_known_of_each_stage() -> None:
    found = {
        name.removeprefix("pipeprof/pipeline/"): value
        for name, value in metrics(PROFILE).items()
        if name.startswith("pipeprof/pipeline/")
    }
    assert found["decode/busy_share"] == 0.96
    assert found["decode/busy_s"] == 19.2
    assert found["read_rows/items"] == 800
    assert "read_rows/busy_s" not in found
