"""The figures of docs/benchmarks.md: what a benchmark printed, where, when, and of which commit.

    python scripts/figures.py record NAME COMMAND...   run it, and keep what it prints
    python scripts/figures.py include DOCUMENT         write what is kept into the document
    python scripts/figures.py take DOCUMENT            keep what stands in the document

`make docs` includes; what misses its bar is kept like any other.
"""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from collections.abc import Sequence
from datetime import datetime, timezone
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryFile

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "figures"
_BLOCK = re.compile(
    r"(?P<head>^<!-- figures/(?P<name>[\w-]+)\.txt -->\n```text\n)(?P<told>.*?)(?P<end>^```$)",
    re.MULTILINE | re.DOTALL,
)
_CRASH = b"Traceback (most recent call last)"


def record(name: str, command: Sequence[str]) -> int:
    """Its exit code. Figures that miss a bar are kept as others are; what crashed is not."""
    told = f"{' '.join(['python', *command[1:]])}: {_now()}\n"
    with TemporaryFile() as errors:
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True) as running:
            assert running.stdout is not None
            for line in running.stdout:
                print(line, end="", flush=True)
                told += line
        errors.seek(0)
        said = errors.read()
    sys.stderr.write(said.decode(errors="replace"))
    if running.returncode < 0 or _CRASH in said:
        print(f"Not kept: it ended before its time ({running.returncode}).", file=sys.stderr)
        return running.returncode or 1
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / f"{name}.txt").write_text(told, encoding="utf-8")
    print(f"Kept as {FOLDER.name}/{name}.txt; `make docs` puts it into docs/benchmarks.md.")
    return running.returncode


def _now() -> str:
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


def included(document: str) -> str:
    """``document``, with what is kept in place of what stood in it."""
    return _BLOCK.sub(_kept, document)


def _kept(block: re.Match[str]) -> str:
    told = (FOLDER / f"{block['name']}.txt").read_text(encoding="utf-8")
    return f"{block['head']}{told}{block['end']}"


def take(document: str) -> None:
    """The other way round: for figures that were put together by hand, from several runs."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for block in _BLOCK.finditer(document):
        (FOLDER / f"{block['name']}.txt").write_text(block["told"], encoding="utf-8")


def main(arguments: Sequence[str]) -> int:
    task, target, *command = arguments
    if task == "record":
        return record(target, command)
    document = Path(target)
    text = document.read_text(encoding="utf-8")
    if task == "take":
        take(text)
    else:
        document.write_text(included(text), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
