"""A comparison in the terminal, as a reader sees it."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path

import pytest
from rich.cells import cell_len

from pipeprof.model import Comparison, Difference
from tests.comparisons import compared, drawn, sample_comparison, three_runs
from tests.contracts.report_samples import HOSTILE, renamed
from tests.report.full import ESCAPE, full_text, section

GOLDEN = Path(__file__).parent.parent / "golden"


@pytest.mark.parametrize(
    ("name", "result"), [("comparison", sample_comparison()), ("comparisons", three_runs())]
)
def test_it_reads_like_the_golden_file(name: str, result: Comparison) -> None:
    file = GOLDEN / f"{name}.txt"
    if os.environ.get("PIPEPROF_UPDATE_GOLDEN"):
        file.write_text(full_text(result), encoding="utf-8")
    assert full_text(result) == file.read_text(encoding="utf-8")


@pytest.mark.parametrize("width", [80, 100])
def test_nothing_is_wider_than_the_page(width: int) -> None:
    hostile = [renamed(three_runs(), text) for text in HOSTILE]
    for result in (sample_comparison(), three_runs(), *hostile):
        lines = full_text(result, width=width).splitlines()
        assert max(map(cell_len, lines)) <= width


def test_stages_stand_in_the_order_of_the_journey_each_with_its_interval() -> None:
    table = section(full_text(sample_comparison()), "Where the time goes").splitlines()
    names = [line.split()[0] for line in table[2:9]]
    assert names == ["fetch", "read", "decode", "collate", "pin", "ready", "wait"]
    decode = next(line for line in table if "decode" in line)
    assert re.search(r"28.4 ms +35.5 ms +\+7.10 ms +\+4.90 ms to \+9.30 ms +\+25 % +more", decode)
    pin = next(line for line in table if "pin" in line)
    assert re.search(r"unknown +200 µs +unknown$", pin)
    assert "Unknown: not measured in one of the runs" in " ".join(table)


def test_slower_stages_are_red_and_longer_slack_is_not() -> None:
    (pair,) = sample_comparison().pairs
    grown = Difference(0.001, 0.005, 0.004, (0.003, 0.005), "more")
    longer = replace(pair, stages={**pair.stages, "ready": grown})
    coloured = full_text(Comparison((longer,)), color=True).splitlines()
    red = [ESCAPE.sub("", line) for line in coloured if "31m" in line]
    assert "SLOWER" in red[0]
    rows = ("fetch", "decode", "wait", "ready", "read")
    worse = [name for name in rows if any(f"{name} " in line for line in red[1:])]
    assert worse == ["fetch", "decode", "wait"]


def test_equal_settings_and_throughput_are_reported_in_words() -> None:
    report = full_text(compared(drawn(0), drawn(1)))
    assert "Nothing recorded: the settings" in report
    assert "NO DIFFERENCE that this data can show" in report
    assert "not directly comparable" not in report


def test_too_little_to_tell() -> None:
    report = full_text(compared(drawn(0), drawn(1, batches=8)))
    assert report.startswith("TOO LITTLE TO TELL: ")
    assert "+0.0 points" not in report or "95 %: +0.0" not in report


def test_several_runs_open_with_a_table_that_compares_them_with_the_first() -> None:
    report = full_text(three_runs())
    table = section(report, "Runs compared with the first").splitlines()
    assert table[2].split()[:4] == ["runs/main.json", "60,235", "(57,900–62,600)", "1.00×"]
    assert table[3].split()[3:5] == ["0.82×", "0.76–0.88"]
    assert report.count("These runs are not directly comparable") == 1
    assert "one data set was left out" in section(report, "Confidence")


def test_it_explains_how_intervals_are_computed() -> None:
    part = " ".join(section(full_text(sample_comparison()), "Confidence").split())
    assert "block bootstrap over 1,800 and 12,000 batches" in part
    assert "for stages, over the 1,800 and 2,000 recorded ones" in part
    assert "Widened by 6 %, by which two runs of one setting may differ" in part
