"""What the documents quote of a benchmark is what it printed, and was kept."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "figures"
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
QUOTES = [
    pytest.param(text, name, id=f"{path.stem}: {text}")
    for path in DOCUMENTS
    for text, name in re.findall(
        r"\[([^\]\[]+)\]\((?:[\w./-]*/)?figures/([\w.-]+\.txt)\)", path.read_text()
    )
]


def numbers(text: str) -> set[str]:
    """``10,000.5`` is 10000.5; a sign, a unit or a full stop behind it is no part of it."""
    return {each.replace(",", "") for each in re.findall(r"\d(?:[\d,]*\d)?(?:\.\d+)?", text)}


@pytest.mark.parametrize(("text", "name"), QUOTES)
def test_the_numbers_of_a_quotation_stand_in_one_line_of_its_file(text: str, name: str) -> None:
    quoted = numbers(text) if text != name else set()
    lines = (FOLDER / name).read_text().splitlines()
    assert any(quoted <= numbers(line) for line in lines), f"no line of {name} has {quoted}"


def test_every_file_is_linked_and_something_is_quoted_of_it() -> None:
    linked = {param.values[1] for param in QUOTES}
    quoted = {param.values[1] for param in QUOTES if numbers(str(param.values[0]))}
    assert linked == quoted == {path.name for path in FOLDER.iterdir()}


@pytest.fixture
def figures(tmp_path: Path) -> dict[str, Any]:
    """The script, with a folder of its own."""
    found = runpy.run_path(str(ROOT / "scripts" / "figures.py"))
    found["record"].__globals__["FOLDER"] = tmp_path / "figures"
    return found


def test_what_a_benchmark_prints_is_kept_with_its_circumstances(
    figures: dict[str, Any], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    missed = "print('0.7, bar 0.5: missed'); raise SystemExit(1)"
    assert figures["record"]("mine", [sys.executable, "-c", missed]) == 1
    head, printed = (tmp_path / "figures" / "mine.txt").read_text().splitlines()
    assert printed == "0.7, bar 0.5: missed"
    assert re.search(r": \d{4}-\d\d-\d\d \d\d:\d\d UTC, commit \w+.*, \d+ cores, Python ", head)
    assert printed in capfd.readouterr().out, "it is shown as well"


@pytest.mark.parametrize("end", ["1 / 0", "import os; os.kill(os.getpid(), 9)"])
def test_of_one_that_crashes_nothing_is_kept(
    end: str, figures: dict[str, Any], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    code = f"print('half', flush=True); {end}"
    assert figures["record"]("mine", [sys.executable, "-c", code]) != 0
    assert "Not saved" in capfd.readouterr().err
    assert not (tmp_path / "figures").exists()
