"""Measures the HTML page of a run of a million batches: its size, and the time and memory to render
it. The time until it can be used in a browser is compared with that of an empty page.

Run with ``make bench-html``; the page needs Chromium (Debian: apt-get install chromium).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from benchmarks.endless import WORKERS, drive, recording_of
from pipeprof.analyze.assemble import assemble
from pipeprof.analyze.profile.batch_table import Columns
from pipeprof.analyze.profile.run_summary import Summary
from pipeprof.measure.clock import FakeClock
from pipeprof.measure.recorder import Recorder
from pipeprof.model import Profile
from pipeprof.units import format_bytes, format_duration

BATCHES = 1_000_000
TIMES = 7
MOST_BYTES, MOST_SECONDS, MOST_MEMORY, MOST_INTERACTIVE_S = 2_000_000, 5.0, 500_000_000, 2.0
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
EMPTY = "<!doctype html><script>document.documentElement.dataset.ready = performance.now()</script>"


def profile_of(batches: int) -> Profile:
    """Return the profile of a run that is simulated with the real recorder on a fake clock."""
    summary, clock = Summary(warmup=32), FakeClock()
    recorder = Recorder(clock, fold=lambda arrays: summary.add(Columns(arrays)))
    drive(recorder, clock, batches)
    return assemble(recording_of(recorder), earlier=summary)


def render(saved: Path, page: Path) -> tuple[float, int]:
    """Return the seconds, with Python's start, and peak bytes of ``pipeprof report --html``."""
    return measured("report", saved, page)


def measured(name: str, saved: Path, page: Path) -> tuple[float, int]:
    """Return the seconds and peak bytes of the command ``name``, which writes a ``page``."""
    command = [sys.executable, "-m", "pipeprof", name, str(saved), "--html", str(page)]
    began = time.perf_counter()
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"pipeprof {name} failed")
    return time.perf_counter() - began, used.ru_maxrss * 1024


def interactive(pages: list[Path]) -> list[list[float]]:
    """Return the seconds until each page can be used. Pages alternate, each in a fresh context."""
    from playwright.sync_api import sync_playwright

    found = next(filter(None, map(shutil.which, BROWSERS)))
    taken: list[list[float]] = [[] for _ in pages]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        for _ in range(TIMES):
            for page, seconds in zip(pages, taken, strict=True):
                context = browser.new_context(offline=True)
                tab = context.new_page()
                tab.goto(page.as_uri())
                tab.wait_for_function("document.documentElement.dataset.ready")
                ready = tab.evaluate("Number(document.documentElement.dataset.ready)")
                seconds.append(ready / 1000)
                context.close()
        browser.close()
    return taken


def spread(values: list[float]) -> str:
    low, high = format_duration(min(values)), format_duration(max(values))
    return f"{format_duration(median(values)):>8} ({low}–{high})"


def main() -> int:
    batches = int(sys.argv[1]) if len(sys.argv) > 1 else BATCHES
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        saved, page, empty = folder / "run.json", folder / "run.html", folder / "empty.html"
        profile_of(batches).save(saved)
        empty.write_text(EMPTY)
        runs = [render(saved, page) for _ in range(TIMES)]
        size, memory = page.stat().st_size, max(used for _, used in runs)
        print(f"{batches:,} batches of {WORKERS} workers; median (least–most) of {TIMES}")
        print(f"  page          {format_bytes(size):>8}  bar {format_bytes(MOST_BYTES)}")
        print(f"  made in       {spread([s for s, _ in runs])}  bar {MOST_SECONDS:.0f} s")
        print(f"  memory        {format_bytes(memory):>8}  bar {format_bytes(MOST_MEMORY)}")
        good = size < MOST_BYTES and memory < MOST_MEMORY
        good = good and median(s for s, _ in runs) < MOST_SECONDS
        if not any(map(shutil.which, BROWSERS)):
            print("  no Chromium: how soon it can be used is not measured")
            return int(not good)
        used, control = interactive([page, empty])
        print(f"  can be used   {spread(used)}  bar {MOST_INTERACTIVE_S:.0f} s")
        print(f"  an empty page {spread(control)}  (control)")
        return int(not (good and median(used) < MOST_INTERACTIVE_S))


if __name__ == "__main__":
    sys.exit(main())
