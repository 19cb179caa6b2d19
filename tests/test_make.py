"""What the documents and continuous integration ask of the Makefile is there, and each test is run
by one target."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.support.tiers import SLOW


def targets(repo: Path) -> set[str]:
    return set(re.findall(r"^([a-z0-9-]+):.*## ", (repo / "Makefile").read_text(), re.MULTILINE))


def asked(text: str) -> set[str]:
    """What stands after `make`, in code or at the beginning of a line."""
    return set(re.findall(r"(?:^|`|^exec )make ([a-z][a-z0-9-]*)", text, re.MULTILINE))


def test_what_is_asked_for_can_be_made(repo: Path) -> None:
    texts = [repo / "README.md", repo / "CONTRIBUTING.md", repo / ".ci/run"]
    named = {path.name: asked(path.read_text()) for path in [*texts, *repo.glob("docs/*.md")]}
    assert named["README.md"] >= {"demo", "test"}
    assert named["run"] == {"test", "test-all", "lab"}
    known = targets(repo)
    assert {name: unknown for name, each in named.items() if (unknown := each - known)} == {}


def dry_run(repo: Path, target: str) -> str:
    """The commands that `make` would run."""
    alone = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    done = subprocess.run(
        ["make", "--dry-run", target], cwd=repo, env=alone, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("timed", [True, False])
@pytest.mark.parametrize("slow", [True, False])
@pytest.mark.parametrize("lab", [True, False])
def test_every_test_but_the_labs_is_run_once(
    timed: bool, slow: bool, lab: bool, repo: Path
) -> None:
    kind, chosen = {"timed": timed, "slow": slow, "lab": lab}, []
    for target in ("tests", "test-all"):
        parts = re.findall(r"-m pytest -m '([a-z ]+)'", dry_run(repo, target))
        chosen += [target for part in parts if eval(part, {}, kind)]
    assert chosen == ([] if lab else ["test-all" if slow else "tests"])


def test_what_is_said_to_be_slow_is_there(repo: Path) -> None:
    assert [name for name in SLOW if not (repo / "tests" / name).exists()] == []


def test_all_is_run_by_make_test(repo: Path) -> None:
    commands = dry_run(repo, "test")
    for tool in ("ruff check", "ruff format --check", "mypy", "lint-imports", "pytest"):
        assert tool in commands, tool
