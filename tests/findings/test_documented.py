"""docs/findings.md describes every case, and every case is provoked by a test."""

from __future__ import annotations

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from pipeprof.analyze.advice.findings import CASES

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
def test_a_case_says_what_it_is_when_it_is_reported_and_how_to_fix_it(case):
    what, reported, fix = case.meaning.split("\n\n")
    assert what.endswith(".")
    assert reported.startswith("Reported ")
    assert fix.startswith("Fix: ")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.code)
def test_a_case_is_provoked_by_a_test(case):
    assert case.code in looked_for()


@cache
def looked_for() -> set[str]:
    """Words of our tests' own code, not of what they say about it, but for those which are not to
    be found: left of a ``not in``."""
    found, absent = list[ast.Constant](), set[ast.AST]()
    for path in (ROOT / "tests").rglob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.NotIn):
                absent.add(node.left)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.append(node)
    return {node.value for node in found if node not in absent}
