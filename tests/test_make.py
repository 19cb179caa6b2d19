"""The Makefile has every target that the documents and continuous integration use."""

from __future__ import annotations

import itertools
import re
import subprocess
import sys
from pathlib import Path

import pytest
from _pytest.mark.expression import Expression

from tests.support.env import UNWATCHED
from tests.support.tiers import SLOW


def targets(repo: Path) -> set[str]:
    return set(re.findall(r"^([a-z0-9-]+):.*## ", (repo / "Makefile").read_text(), re.MULTILINE))


def make_targets(text: str) -> set[str]:
    """Return the targets that follow `make` in code or at the beginning of a line."""
    return set(re.findall(r"(?:^|`|^exec )make ([a-z][a-z0-9-]*)", text, re.MULTILINE))


def test_every_used_target_exists(repo: Path) -> None:
    texts = [repo / "README.md", repo / "CONTRIBUTING.md", repo / ".ci/run"]
    named = {
        path.name: make_targets(path.read_text()) for path in [*texts, *repo.glob("docs/**/*.md")]
    }
    assert named["README.md"] >= {"demo", "test"}
    assert named["run"] == {"test", "test-all", "integrations", "lab"}
    known = targets(repo)
    assert {name: unknown for name, each in named.items() if (unknown := each - known)} == {}


@pytest.mark.parametrize("environment", ["main", "streaming"])
def test_the_frameworks_are_installed_with_all_that_pipeprof_needs(
    environment: str, repo: Path
) -> None:
    """Their lists are whole, since pip resolves nothing there."""
    listed = (repo / "tests" / "integrations" / f"{environment}.txt").read_text()
    project = (repo / "pyproject.toml").read_text()
    block = re.search(r"^dependencies = \[\n(.*?)^\]", project, re.DOTALL | re.MULTILINE)[1]
    needed = set(re.findall(r'^    "([\w.-]+)', block, re.MULTILINE))
    assert {"torch", "backports.zstd"} <= needed
    assert needed <= {line.partition("==")[0].lower() for line in listed.splitlines()}


def test_every_slow_test_exists(repo: Path) -> None:
    assert [name for name in SLOW if not (repo / "tests" / name).exists()] == []


def test_each_test_is_run_by_one_target_alone(repo: Path) -> None:
    """However its marks are mixed: integrations in `make test` would fail for want of packages."""
    marks = ("slow", "timed", "lab", "integrations")
    mixes = [set(itertools.compress(marks, bits)) for bits in itertools.product((0, 1), repeat=4)]
    mixes = [mix for mix in mixes if not mix >= {"lab", "integrations"}]
    command = ["make", "-n", "tests", "test-all", "integrations", "lab"]
    lines = subprocess.run(command, cwd=repo, text=True, capture_output=True, check=True).stdout
    chosen = re.findall(r"-m pytest -m (?:'(.+?)'|(\w+))", lines)
    runs = [Expression.compile(quoted or bare) for quoted, bare in chosen]
    for mix in mixes:
        assert sum(run.evaluate(lambda name, mix=mix, **_: name in mix) for run in runs) == 1, mix


def test_what_fails_in_parallel_is_run_again_by_itself(repo: Path) -> None:
    command = ["make", "-n", "tests", "test-all", "integrations", "lab"]
    lines = subprocess.run(command, cwd=repo, text=True, capture_output=True, check=True).stdout
    parallel = re.findall(r"-m pytest -m ('.+?') .*-n \d", lines)
    assert len(parallel) == 5
    assert re.findall(r"--last-failed .*-m ('.+?')", lines) == parallel


@pytest.mark.slow
@pytest.mark.parametrize(
    ("first", "second", "code"),
    [("assert False", "pass", 0), ("assert False", "assert False", 2),
     ("raise KeyboardInterrupt", "pass", 2)],
    ids=["passes by itself", "fails again", "is interrupted"],
)  # fmt: skip
def test_only_a_test_that_fails_in_parallel_has_a_second_try(
    first: str, second: str, code: int, repo: Path, tmp_path: Path
) -> None:
    (tmp_path / "test_it.py").write_text(
        "from pathlib import Path\n"
        "def test_it():\n"
        "    tries = Path('tries')\n"
        "    if tries.exists():\n"
        f"        {second}\n"
        "    else:\n"
        "        tries.touch()\n"
        f"        {first}\n"
    )
    (tmp_path / "Makefile").write_text(
        f"include {repo}/Makefile\nit:\n\t@$(call in_parallel,not lab,-p no:xdist)\n"
    )
    done = subprocess.run(
        ["make", f"BIN={Path(sys.executable).parent}", "it"],
        cwd=tmp_path, env=UNWATCHED, capture_output=True,
    )  # fmt: skip
    assert done.returncode == code, done.stdout.decode()
