"""Run a benchmark and keep what it prints: where, when, and of which commit.

    python scripts/figures.py NAME COMMAND...   writes docs/figures/NAME.txt

Figures that miss a bar are kept like any other. docs/benchmarks.md links each file.
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
    """Return the exit code of ``command``. The output of a command that crashed is not kept."""
    printed = f"{' '.join(['python', *command[1:]])}: {_circumstances()}\n"
    with TemporaryFile() as errors:
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True) as running:
            assert running.stdout is not None
            for line in running.stdout:
                print(line, end="", flush=True)
                printed += line
        errors.seek(0)
        complaint = errors.read()
    sys.stderr.write(complaint.decode(errors="replace"))
    if running.returncode < 0 or _CRASH in complaint:
        print(f"Not kept: it ended before its time ({running.returncode}).", file=sys.stderr)
        return running.returncode or 1
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / f"{name}.txt").write_text(printed, encoding="utf-8")
    print(f"Kept as {FOLDER.name}/{name}.txt. The documents that quote it must follow.")
    return running.returncode


def _circumstances() -> str:
    """Moment, commit and machine, with what else it has to do."""
    commit = _git("describe", "--always", "--dirty=, changed", "--exclude=*")
    return ", ".join([
        datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC"), f"commit {commit}",
        f"{len(os.sched_getaffinity(0))} cores", f"Python {platform.python_version()}",
        f"torch {version('torch')}", f"Linux {platform.release()}",
        f"load average {os.getloadavg()[0]:.1f}",
    ])  # fmt: skip


def _git(*arguments: str) -> str:
    asked = ["git", "-C", str(ROOT), *arguments]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


if __name__ == "__main__":
    sys.exit(record(sys.argv[1], sys.argv[2:]))
