"""Run scripts under `pipeprof run` in a process of their own."""

import subprocess
import sys

from tests.support.env import UNWATCHED
from tests.support.warm import with_torch

RUN = [sys.executable, "-m", "pipeprof", "run"]


def call(command, folder, env=UNWATCHED, **options):
    """Run a command. A program of Python is forked from one that has imported torch, which takes
    seconds."""
    python, first, *_ = command
    if python == sys.executable and not options and (first == "-m" or first[0] != "-"):
        return with_torch().run(command[1:], folder, env, timeout=100)
    return call_cold(command, folder, env, **options)


def call_cold(command, folder, env=UNWATCHED, **options):
    """Run a command as a user does: Python starts, and the script imports torch."""
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
