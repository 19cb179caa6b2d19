"""import-linter catches each broken rule between the packages."""

from __future__ import annotations

import re
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


BROKEN = [
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
]
"""File, line that breaks a rule in it, and the rule."""


def test_each_broken_rule_is_caught(house: Path) -> None:
    for file, line, _ in BROKEN:
        with (house / file).open("a") as source:
            source.write(f"{line}\n")
    status, output = lint(house)
    assert status == 1, output
    _, *sections = re.split(r"\n([^\n]+)\n-{5,}\n", output)
    broken = dict(zip(sections[::2], sections[1::2], strict=True))
    for file, line, contract in BROKEN:
        module = "pipeprof." + file.removeprefix("pipeprof/").removesuffix(".py").replace("/", ".")
        named = [text for name, text in broken.items() if name.startswith(contract)]
        assert any(f"{module} -> {line.removeprefix('import ')}" in text for text in named), output
