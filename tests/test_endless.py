"""The memory of a profiled run stays small however long it is. `make bench-memory` runs ten million
batches."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path


def test_a_run_of_many_batches_keeps_little(repo: Path) -> None:
    done = subprocess.run(
        [sys.executable, repo / "benchmarks/endless.py", "200000"],
        cwd=repo,
        env={"PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "200,000 batches of 16 workers" in done.stdout


def test_a_run_that_exports_all_the_time_keeps_its_files_small(repo: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.soak", "--batches", "100000"]
    done = subprocess.run(command, cwd=repo, capture_output=True, text=True, check=False)
    assert "100,000 batches of 0 workers" in done.stdout, done.stderr
    assert re.search(r"files  [\d.]+ kB, bar 33.0 MB", done.stdout)
