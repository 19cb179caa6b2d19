"""docs/findings.md tells of every case, and every case is provoked by a test."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pipeprof.analyze.findings import CASES

ROOT = Path(__file__).parents[2]


def test_the_document_is_what_the_cases_say(tmp_path: Path):
    """Else: make docs."""
    out = tmp_path / "findings.md"
    subprocess.run([sys.executable, "scripts/findings_doc.py", str(out)], check=True, cwd=ROOT)
    assert out.read_text() == (ROOT / "docs" / "findings.md").read_text()


def test_codes_are_each_of_one_case():
    codes = [case.code for case in CASES]
    assert len(set(codes)) == len(codes)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.code)
def test_a_case_says_what_it_is_and_how_it_is_seen(case):
    what, _, how = case.meaning.partition("\n\n")
    assert what.endswith(".")
    assert how.startswith("Seen ")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.code)
def test_a_case_is_provoked_by_a_test(case):
    others = (path for path in (ROOT / "tests").rglob("test_*.py") if path != Path(__file__))
    assert any(f'"{case.code}"' in path.read_text() for path in others)
