"""What docs/benchmarks.md shows is what benchmarks printed, and was kept."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="module")
def figures(repo: Path) -> dict[str, Any]:
    return runpy.run_path(str(repo / "scripts" / "figures.py"))


@pytest.fixture
def kept(figures: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that figures are kept in meanwhile."""
    monkeypatch.setitem(figures["record"].__globals__, "FOLDER", tmp_path / "figures")
    return tmp_path / "figures"


def test_the_document_has_what_is_kept(figures: dict[str, Any], repo: Path) -> None:
    """Else: make docs."""
    document = (repo / "docs" / "benchmarks.md").read_text()
    assert figures["included"](document) == document


def test_nothing_is_pasted_and_nothing_is_kept_in_vain(repo: Path) -> None:
    document = (repo / "docs" / "benchmarks.md").read_text()
    named = re.findall(r"^<!-- figures/([\w-]+)\.txt -->\n```text$", document, re.MULTILINE)
    assert len(named) == document.count("```text\n") > 0
    assert sorted(named) == sorted(path.stem for path in (repo / "docs" / "figures").iterdir())


def test_what_a_benchmark_prints_is_kept_with_its_circumstances(
    figures: dict[str, Any], kept: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    missed = "print('0.7, bar 0.5: missed'); raise SystemExit(1)"
    assert figures["main"](["record", "mine", sys.executable, "-c", missed]) == 1
    head, told = (kept / "mine.txt").read_text().splitlines()
    assert told == "0.7, bar 0.5: missed"
    assert re.search(r": \d{4}-\d\d-\d\d \d\d:\d\d UTC, commit \w+.*, \d+ cores, Python ", head)
    assert told in capfd.readouterr().out, "it is shown as well"
    document = "<!-- figures/mine.txt -->\n```text\nolder\n```\n"
    assert "older" not in figures["included"](document)
    assert told in figures["included"](document)


@pytest.mark.parametrize("end", ["1 / 0", "import os; os.kill(os.getpid(), 9)"])
def test_of_one_that_crashes_nothing_is_kept(
    end: str, figures: dict[str, Any], kept: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    code = f"print('half', flush=True); {end}"
    assert figures["main"](["record", "mine", sys.executable, "-c", code]) != 0
    assert "Not kept" in capfd.readouterr().err
    assert not kept.exists()
