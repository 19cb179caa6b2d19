"""The wording of the live view."""

import pytest

from pipeprof.report.live import LiveView, line, panel

VIEW = LiveView(
    name="train.py:42",
    epoch=2,
    batches=320,
    length=1875,
    left_s=125.0,
    window_s=10.0,
    samples_per_s=1203.4,
    starved=0.412,
    starved_of_all=0.389,
    waits_for="decode",
    ready=0.7,
    capacity=4,
    stages={"decode": 0.0284, "collate": None, "step": 0.0071},
)


def test_a_panel_shows_progress_starved_share_rate_and_stages():
    assert panel(VIEW, 79, color=False) == [
        "-- pipeprof: train.py:42, epoch 2: 320 of 1,875 batches, 2 min 5 s left -------",
        "starved   41.2 % of the last 10.0 s, waiting for decode, 38.9 % overall",
        "rate      1,203 samples/s; queue: 0.7 of 4 batches ready",
        "decode    ████████████████████████  28.4 ms",
        "collate   ?",
        "step      ██████                    7.10 ms",
    ]


def test_the_awaited_stage_is_red_where_there_is_colour():
    rows = panel(VIEW, 79, color=True)
    assert [n for n, row in enumerate(rows) if row.startswith("\x1b[31m")] == [3]
    fed = LiveView("x", 1, 1, starved=0.01, waits_for="decode", stages={"decode": 1.0})
    assert not any("\x1b[31m" in row for row in panel(fed, 79, color=True))


def test_a_line_shows_the_same():
    assert line(VIEW) == (
        "train.py:42, epoch 2: 320 of 1,875 batches, 2 min 5 s left; starved 41.2 % of the last "
        "10.0 s, waiting for decode, 38.9 % overall; 1,203 samples/s; "
        "queue 0.7 of 4 batches ready; decode 28.4 ms, step 7.10 ms"
    )


def test_unknown_figures_are_left_out():
    begun = LiveView("loader", 1, 1)
    assert line(begun) == "loader, epoch 1: 1 batch"
    assert panel(begun, 50, color=False) == [
        "-- pipeprof: loader, epoch 1: 1 batch ------------",
        "starved   not known yet",
    ]


@pytest.mark.parametrize("name", ["\x1b[2Jharm\nful", "データ" * 40, "[red]" * 30])
def test_a_name_neither_controls_the_terminal_nor_breaks_the_layout(name):
    view = LiveView(name, 1, 1)
    for row in panel(view, 60, color=False):
        assert "\x1b" not in row
        assert len(row) <= 60
    assert "\n" not in line(view)
    assert "\x1b" not in line(view)
