"""Run scripts under `pipeprof run` in a process of their own."""

import subprocess
import sys

from tests.support.env import UNWATCHED

RUN = [sys.executable, "-m", "pipeprof", "run"]


def call(command, folder, env=UNWATCHED, **options):
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=100, check=False, env=env,
        **options,
    )  # fmt: skip


def write(folder, files):
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def without_pipeprof(stderr):
    """Return what the script itself wrote to stderr."""
    return "".join(
        line for line in stderr.splitlines(keepends=True) if not line.startswith("pipeprof: ")
    )
