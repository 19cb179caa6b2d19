"""The layout of the terminal report: its width, colours and code.

After a change that is meant to show, update the golden files and read their diff:

    PIPEPROF_UPDATE_GOLDEN=1 pytest tests/report/test_terminal.py
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.cells import cell_len

from pipeprof.model import Profile, Recommendation
from pipeprof.report.document.blocks import Document
from pipeprof.report.terminal.render import render_terminal
from tests.comparisons import three_runs
from tests.contracts.report_contract import ReportContract
from tests.contracts.report_samples import HOSTILE, Result, renamed
from tests.report.full import ESCAPE, full_text
from tests.samples import (
    fed_profile,
    sample_profile,
)
from tests.stage_samples import sample_workers
from tests.sweep_samples import SWEEP_TRIALS, sample_conversion, sample_sweep, sample_trial

GOLDEN = Path(__file__).parent.parent / "golden"


class TestContract(ReportContract):
    def render(self, document: Document) -> str:
        return render_terminal(document, width=400)


@pytest.mark.parametrize(
    ("name", "result"),
    [
        ("profile", sample_profile()),
        ("sweep", sample_sweep()),
        ("conversion", sample_conversion()),
    ],
)
def test_it_reads_like_the_golden_file(name: str, result: Result) -> None:
    file = GOLDEN / f"{name}.txt"
    if os.environ.get("PIPEPROF_UPDATE_GOLDEN"):
        file.write_text(full_text(result), encoding="utf-8")
    assert full_text(result) == file.read_text(encoding="utf-8")


def results() -> Iterator[Result]:
    for text in HOSTILE:
        yield renamed(sample_profile(), text)
        yield renamed(sample_sweep(), text)
    yield sample_profile()
    yield fed_profile()
    yield sample_sweep()
    yield sample_conversion()
    yield sample_profile(workers=sample_workers(64, slow=3))


@pytest.mark.parametrize(
    "width", [60, *(pytest.param(width, marks=pytest.mark.slow) for width in (80, 100))]
)
def test_only_code_to_paste_is_wider_than_the_page(width: int) -> None:
    for result in results():
        code = set(code_lines(result))
        for line in full_text(result, width=width).splitlines():
            assert cell_len(line) <= width or line in code


@pytest.mark.parametrize("width", [60, 100])
def test_code_can_be_pasted_as_it_stands(width: int) -> None:
    for result in (sample_profile(), sample_sweep()):
        lines = full_text(result, width=width).splitlines()
        assert set(code_lines(result)) <= set(lines)


def code_lines(result: Result) -> list[str]:
    advice: list[Recommendation | None]
    if isinstance(result, Profile):
        advice = list(result.recommendations)
    else:
        advice = [one.recommendation for one in result.advice]
    return [line for one in advice if one and one.code for line in one.code.splitlines()]


def test_every_table_fits_60_columns_without_cutting_a_cell() -> None:
    inconclusive = sample_trial(starved=0.05, verdict="inconclusive", bottleneck="worker-cpu")
    trials = (*SWEEP_TRIALS, inconclusive)
    several = (sample_profile(), sample_sweep(trials=trials), three_runs())
    for result in several:
        assert "…" not in full_text(result, width=60)


@pytest.mark.parametrize("width", range(60, 101, 4))
def test_no_line_ends_between_a_figure_and_its_unit(width: int) -> None:
    for result in (sample_profile(), sample_sweep(), three_runs()):
        assert not re.search(r"\d\n *(%|[mµ]?s|[kMG]B)\b", full_text(result, width=width))


def test_colour_changes_nothing_but_colour() -> None:
    for result in (sample_profile(), sample_sweep()):
        coloured = ESCAPE.sub("", full_text(result, color=True))
        stripped = "".join(f"{line.rstrip()}\n" for line in coloured.splitlines())
        assert stripped == full_text(result)
        assert "\x1b" not in full_text(result)


def test_only_the_verdict_and_the_bottleneck_are_red() -> None:
    red = [line for line in full_text(sample_profile(), color=True).splitlines() if "31m" in line]
    assert "STARVED" in red[0]
    rows = [ESCAPE.sub("", line) for line in red[1:]]
    assert [row.split()[0] for row in rows if row[2:4].strip() or "decode" in row] == [
        "workers", "decode", "decode",
    ], "the lowest ceiling, and the cause"  # fmt: skip
    assert "31m" not in full_text(fed_profile(), color=True)
