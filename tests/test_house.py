"""import-linter catches each broken rule between the packages."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

FOLDERS = ("pipeprof", "loaders", "formats", "cli", "bench_data")


@pytest.fixture
def house(repo: Path, tmp_path: Path) -> Path:
    """Return a copy of the code to break. Links stay links."""
    for folder in FOLDERS:
        ignore = shutil.ignore_patterns("__pycache__")
        shutil.copytree(repo / folder, tmp_path / folder, symlinks=True, ignore=ignore)
    shutil.copy(repo / "pyproject.toml", tmp_path)
    return tmp_path


def lint(house: Path) -> tuple[int, str]:
    code = "import sys; from importlinter.cli import lint_imports_command as run; run()"
    done = subprocess.run(
        [sys.executable, "-c", code, "--no-cache"], cwd=house, capture_output=True, text=True
    )
    return done.returncode, done.stdout + done.stderr


def test_the_house_as_it_stands_keeps_its_rules(house: Path) -> None:
    status, output = lint(house)
    assert status == 0, output


@pytest.mark.parametrize(
    ("file", "line", "contract"),
    [
        ("formats/base.py", "import pipeprof.storage.urls", "the rooms, from"),
        ("pipeprof/storage/urls.py", "import pipeprof.formats.base", "the rooms, from"),
        ("loaders/instrument/wrap.py", "import pipeprof.sweep", "the rooms, from"),
        ("bench_data/rows.py", "import pipeprof.loaders.instrument.wrap", "the rooms, from"),
        (
            "pipeprof/measure/stage_timer.py",
            "import pipeprof.loaders.instrument.wrap",
            "the rooms, from",
        ),
        ("pipeprof/analyze/thresholds.py", "import pipeprof.measure.clock", "analysis, sizing"),
        ("pipeprof/analyze/profile/drift.py", "import pipeprof.analyze.advice", "the analysis"),
        ("pipeprof/analyze/advice/proposal.py", "import pipeprof.units", "only the words"),
        ("pipeprof/analyze/profile/drift.py", "import pipeprof.analyze.wording", "numbers first"),
        ("pipeprof/report/text.py", "import torch", "analysis, sizing"),
        ("pipeprof/report/text.py", "import pipeprof.store", "analysis, sizing"),
        ("pipeprof/model/stages.py", "import numpy", "the model is"),
        ("pipeprof/model/stages.py", "import pipeprof.store", "the model is"),
        ("formats/base.py", "import fsspec", "formats do no I/O"),
    ],
)
def test_a_broken_rule_is_caught(file: str, line: str, contract: str, house: Path) -> None:
    with (house / file).open("a") as source:
        source.write(f"{line}\n")
    status, output = lint(house)
    assert status == 1, output
    verdicts = [verdict for verdict in output.splitlines() if " BROKEN" in verdict]
    assert any(verdict.startswith(contract) for verdict in verdicts), output
