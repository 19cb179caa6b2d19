"""The documents by themselves: generated pages are up to date, links work, pages are short."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OUTSIDE = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"]
"""Documents that the site has not, whose links nothing else checks."""
WORDS = {"docs/concepts.md": 900, "docs/develop/architecture.md": 900}
RECORDS = sorted((ROOT / "docs" / "develop" / "decisions").glob("[0-9]*.md"))


def test_the_command_line_page_is_what_the_commands_say(tmp_path: Path) -> None:
    """Else: make docs."""
    out = tmp_path / "cli.md"
    subprocess.run([sys.executable, "scripts/cli_doc.py", str(out)], check=True, cwd=ROOT)
    assert out.read_text() == (ROOT / "docs" / "reference" / "cli.md").read_text()


@pytest.mark.parametrize("name", OUTSIDE)
def test_links_lead_to_files(name: str) -> None:
    links = re.findall(r"\]\(([^)#\s]+)", (ROOT / name).read_text())
    files = [link for link in links if not re.match(r"https?:|mailto:", link)]
    assert [link for link in files if not (ROOT / link).exists()] == []


def test_the_readme_is_short() -> None:
    assert (ROOT / "README.md").read_text().count("\n") <= 150


@pytest.mark.parametrize("name", WORDS)
def test_pages_are_short(name: str) -> None:
    assert _words((ROOT / name).read_text()) <= WORDS[name]


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_a_decision_has_its_four_parts(path: Path) -> None:
    text = path.read_text()
    assert 200 <= _words(text) <= 400
    parts = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert parts == ["Context", "Decision", "Cost", "How it was measured"]


def _words(text: str) -> int:
    """Of prose, tables and code, without what only marks them up."""
    return sum(any(map(str.isalnum, word)) for word in text.split())
