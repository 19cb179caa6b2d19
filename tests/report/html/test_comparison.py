"""A comparison as a page: its text, its charts, and in a real browser."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from pipeprof.model import Comparison
from tests.comparisons import compared, drawn, sample_comparison, three_runs
from tests.contracts.report_samples import LONG_PATH, renamed
from tests.report.full import full_page
from tests.report.html.conftest import Opener
from tests.report.html.pages import HOSTILE, read
from tests.report.html.test_browser import (
    LOOKS,
    every_chart_is_drawn,
    keep,
    look,
    nothing_is_wider_than_the_page,
)

SECTIONS = ["throughput", "runs", "changed", "stages", "confidence", "words"]


def sections(page: str) -> dict[str, str]:
    found = re.findall(r'<section id="([a-z-]+)".*?>(.*?)</section>', page, re.DOTALL)
    return {name: read(f"<div>{body}</div>") for name, body in found}


@pytest.mark.parametrize(
    "comparison", [sample_comparison(), three_runs(), compared(drawn(0), drawn(1, batches=8))]
)
def test_every_section_is_there_and_says_something(comparison: Comparison) -> None:
    found = sections(full_page(comparison))
    assert list(found) == SECTIONS
    assert all(len(text.splitlines()) > 1 for text in found.values())


def specs(page: str) -> dict[str, dict[str, object]]:
    found = re.search(r'<script type="application/json" id="specs">(.*?)</script>', page, re.DOTALL)
    assert found
    told: dict[str, dict[str, object]] = json.loads(found[1])["charts"]
    return told


def test_each_chart_occurs_once_and_has_a_table() -> None:
    page = full_page(three_runs())
    assert list(specs(page)) == re.findall('data-chart="([a-z0-9-]+)"', page)
    assert list(specs(page)) == ["throughput", "stages-1", "stages-2"]
    assert "+4.90 ms to +9.30 ms" in sections(page)["stages"]


def test_slack_is_in_the_table_but_not_drawn() -> None:
    page = full_page(sample_comparison())
    drawn_ = json.dumps(specs(page)["stages-1"])
    assert '"decode"' in drawn_
    assert '"ready"' not in drawn_
    assert "ready" in sections(page)["stages"]


def test_runs_of_one_name_are_drawn_apart() -> None:
    (pair,) = sample_comparison().pairs
    same = Comparison((replace(pair, after=replace(pair.after, file=pair.before.file + "x")),))
    values = specs(full_page(renamed(same, "x")))["throughput"]["data"]
    assert len({row["name"] for row in values["values"]}) == 1, "they are one file"  # type: ignore[index]
    values = specs(full_page(same))["throughput"]["data"]
    assert len({row["name"] for row in values["values"]}) == 2  # type: ignore[index]


def test_without_a_stage_in_common_there_is_no_chart_of_them() -> None:
    (pair,) = sample_comparison().pairs
    page = full_page(Comparison((replace(pair, stages={}),)))
    assert "no stage was measured" in sections(page)["stages"]
    assert list(specs(page)) == ["throughput"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "comparison"),
    [
        ("comparison", sample_comparison()),
        ("hostile-comparison", renamed(three_runs(), HOSTILE + LONG_PATH)),
    ],
)
def test_it_opens_well_on_a_screen_and_on_a_phone(
    name: str, comparison: Comparison, opened: Opener, repo: object
) -> None:
    page = opened(comparison)
    for theme, width in LOOKS:
        look(page, theme, width)
        nothing_is_wider_than_the_page(page)
        every_chart_is_drawn(page)
        keep(page, repo, f"{name}-{width}-{theme}")  # type: ignore[arg-type]
    assert page.evaluate("window.harmed") is None
