"""Run the trainings of ``examples/frameworks`` with the released packages of the frameworks.

`make integrations` installs them in environments of their own, since some of them cannot be
installed together.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from tests.support.env import UNWATCHED
from tests.support.requirements import missing
from tests.support.warm import WarmPython

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "frameworks"
WITHOUT_CUDA = ROOT / "tests" / "integrations" / "without_cuda.py"
_LIMIT_S = 240
IMPORTED = {
    "accelerate_loop.py": ("accelerate",),
    "beside_lightning.py": ("lightning",),
    "lightning_fabric.py": ("lightning",),
    "lightning_trainer.py": ("lightning",),
}
"""What need not be imported again for each run of a script. Others are not here, since their
libraries have threads of their own: a fork of these may not end well."""


@dataclass(frozen=True)
class Answer:
    """What a training printed about itself."""

    losses: list[float]
    waited: float
    """The share of its time between training steps, by the clock of the script."""
    profiles: dict[str, Any]
    stdout: str
    stderr: str


def folder_of(environment: str) -> Path:
    folder = ROOT / ".integrations" / environment / "bin"
    if not (folder / "python").exists():
        missing(f"{folder.parent} is not there: make integrations")
    return folder


@cache
def train(environment: str, script: str, *arguments: str) -> Answer:
    """Run an example, or another script, by Python itself; once for all tests that look at it."""
    extra = [str(WITHOUT_CUDA)] if environment == "streaming" else []
    words = [*extra, str(EXAMPLES / script), *arguments]
    if (modules := IMPORTED.get(Path(script).name)) is not None:
        return _answer(warm(environment, *modules).run(words, EXAMPLES, with_examples()))
    return _answer(_run([str(folder_of(environment) / "python"), "-W", "ignore", *words]))


def train_longer(folder: Path, environment: str, script: str, *arguments: str) -> Answer:
    """Run an example with ten times as many samples, so that a search for settings gets along."""
    file = folder / "longer.py"
    file.write_text(
        f"import sys, toy\nsys.argv[1:] = {[*arguments]!r}\ntoy.SAMPLES *= 10\n"
        f"import {Path(script).stem} as training\ntraining.main()\n"
    )
    return _answer(_run([str(folder_of(environment) / "python"), "-W", "ignore", str(file)]))


@cache
def warm(environment: str, *modules: str) -> WarmPython:
    """It has imported torch and these modules."""
    python = str(folder_of(environment) / "python")
    return WarmPython(python, ["torch", *modules], with_examples(), ["-W", "ignore"])


def has_package(environment: str, package: str) -> None:
    """Require that ``package`` can be imported in ``environment``."""
    command = [str(folder_of(environment) / "python"), "-c", f"import {package}"]
    if _run(command).returncode:
        missing(f"{package} is not in .integrations/{environment}: make integrations")


def plain(environment: str, script: str, *arguments: str) -> Answer:
    """The same training without pipeprof."""
    return train(environment, script, "plain", *arguments)


def train_under_run(
    environment: str, script: str, out: Path, *arguments: str, options: Sequence[str] = ()
) -> Answer:
    """Run an example by ``pipeprof run``; its profiles have the names of their files."""
    command = [str(folder_of(environment) / "pipeprof"), "run", "--out", str(out), *options]
    answer = _answer(_run([*command, str(EXAMPLES / script), "plain", *arguments]))
    files = sorted(out.rglob("*.json"))
    profiles = {str(each.relative_to(out)): json.loads(each.read_text()) for each in files}
    return replace(answer, profiles=profiles)


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, capture_output=True, text=True, timeout=_LIMIT_S, env=with_examples(), cwd=EXAMPLES
    )


def run_changed(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a script that changes an example of Lightning."""
    (folder / "script.py").write_text(code)
    return warm("main", "lightning").run([str(folder / "script.py")], EXAMPLES, with_examples())


def with_examples() -> dict[str, str]:
    """The environment in which scripts find the modules of the examples."""
    paths = [str(EXAMPLES), UNWATCHED.get("PYTHONPATH")]
    return UNWATCHED | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}


def _answer(done: subprocess.CompletedProcess[str]) -> Answer:
    assert done.returncode == 0, done.stderr[-4000:]
    line = [each for each in done.stdout.splitlines() if each.startswith('{"losses"')][-1]
    return Answer(**json.loads(line), stdout=done.stdout, stderr=done.stderr)
