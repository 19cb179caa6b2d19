"""What the documents and continuous integration ask of the Makefile is there."""

from __future__ import annotations

import re
from pathlib import Path

from tests.support.tiers import SLOW


def targets(repo: Path) -> set[str]:
    return set(re.findall(r"^([a-z0-9-]+):.*## ", (repo / "Makefile").read_text(), re.MULTILINE))


def asked(text: str) -> set[str]:
    """What stands after `make`, in code or at the beginning of a line."""
    return set(re.findall(r"(?:^|`|^exec )make ([a-z][a-z0-9-]*)", text, re.MULTILINE))


def test_what_is_asked_for_can_be_made(repo: Path) -> None:
    texts = [repo / "README.md", repo / "CONTRIBUTING.md", repo / ".ci/run"]
    named = {path.name: asked(path.read_text()) for path in [*texts, *repo.glob("docs/**/*.md")]}
    assert named["README.md"] >= {"demo", "test"}
    assert named["run"] == {"test", "test-all", "lab"}
    known = targets(repo)
    assert {name: unknown for name, each in named.items() if (unknown := each - known)} == {}


def test_what_is_said_to_be_slow_is_there(repo: Path) -> None:
    assert [name for name in SLOW if not (repo / "tests" / name).exists()] == []
