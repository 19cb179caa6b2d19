"""Run a benchmark and save its output with the date, the commit and the machine.

    python scripts/figures.py NAME COMMAND...   writes docs/figures/NAME.txt

Figures that miss a bar are saved too. docs/benchmarks.md links each file.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from datetime import datetime, timezone
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryFile

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "figures"
_CRASH = b"Traceback (most recent call last)"


def record(name: str, command: Sequence[str]) -> int:
    """Run ``command``, save its output, and return its exit code. A crash saves nothing."""
    printed = f"{' '.join(['python', *command[1:]])}: {_circumstances()}\n"
    with TemporaryFile() as errors:
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True) as running:
            assert running.stdout is not None
            for line in running.stdout:
                print(line, end="", flush=True)
                printed += line
        errors.seek(0)
        stderr = errors.read()
    sys.stderr.write(stderr.decode(errors="replace"))
    if running.returncode < 0 or _CRASH in stderr:
        print(f"Not saved: the command crashed ({running.returncode}).", file=sys.stderr)
        return running.returncode or 1
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / f"{name}.txt").write_text(printed, encoding="utf-8")
    print(f"Saved as {FOLDER.name}/{name}.txt. Update the documents that quote it.")
    return running.returncode


def _circumstances() -> str:
    """Return the date, the commit, and the machine with its load."""
    commit = _git("describe", "--always", "--dirty=, changed", "--exclude=*")
    return ", ".join([
        datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC"), f"commit {commit}",
        f"{len(os.sched_getaffinity(0))} cores", f"Python {platform.python_version()}",
        f"torch {version('torch')}", f"Linux {platform.release()}",
        f"load average {os.getloadavg()[0]:.1f}",
    ])  # fmt: skip


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(ROOT), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


if __name__ == "__main__":
    sys.exit(record(sys.argv[1], sys.argv[2:]))
