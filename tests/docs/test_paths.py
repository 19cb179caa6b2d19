"""What the pages about the method name of the repository is there: code, tests, modules to run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
METHOD = sorted((ROOT / "docs" / "method").glob("*.md"))
PAGES = [*METHOD, ROOT / "docs" / "benchmarks.md", ROOT / "docs" / "accuracy.md"]
MOST_WORDS = 900
"""Of a page about one idea."""


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_the_code_that_a_page_names_is_there(page: Path) -> None:
    missing, folder = [], ROOT
    for name in re.findall(r"[\w/]+/(?=`)|[\w/]+\.py\b", page.read_text()):
        found = ROOT / name if "/" in name else folder / name  # `a/b.py`, `c.py` are in one folder
        folder = found.parent
        if not found.exists():
            missing.append(name)
    assert not missing


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_the_modules_that_a_page_runs_are_there(page: Path) -> None:
    modules = re.findall(r"python -m ([\w.]+)", page.read_text())
    assert [each for each in modules if not (ROOT / f"{each.replace('.', '/')}.py").exists()] == []


@pytest.mark.parametrize("page", METHOD, ids=lambda path: path.stem)
def test_a_page_of_the_method_is_short(page: Path) -> None:
    assert sum(bool(re.search(r"\w", each)) for each in page.read_text().split()) <= MOST_WORDS
