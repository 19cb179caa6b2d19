"""Run the demo, put its output into the README and its pictures into docs/img.

make setup && PATH=.venv/bin:$PATH python -m scripts.demo_readme     # needs Chromium
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from io import StringIO
from pathlib import Path

from playwright.sync_api import sync_playwright
from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

import pipeprof
from pipeprof.report.document.build import first_screen
from pipeprof.report.terminal.render import WIDTH, render_terminal
from scripts.demo import SCRIPT
from scripts.viewer_check import ROOT, chromium

PAGE_PICTURE = ROOT / "docs/img/report.png"
TERMINAL_PICTURE = ROOT / "docs/img/terminal.svg"
PAGE_WIDTH, PAGE_HEIGHT = 1080, 1500


def main() -> None:
    command = [sys.executable, "-m", "scripts.demo"]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    print(done.stdout)
    readme = ROOT / "README.md"
    text, found = re.subn(
        r"(?s)All that `make demo` printed.*?```text\n.*?```\n",
        lambda _: f"{circumstances()}\n\n```text\n{done.stdout.strip()}\n```\n",
        readme.read_text(),
    )
    assert found == 1
    readme.write_text(text)
    before = ROOT / "demo/before"
    draw_terminal(next(before.glob("*.json")))
    take_picture(next(before.glob("*.html")))


def circumstances() -> str:
    return (
        f"All that `make demo` printed on a machine with {os.cpu_count()} cores, "
        f"at a load average of {os.getloadavg()[1]:.0f}:"
    )


def draw_terminal(saved: Path) -> None:
    """Draw the output of `pipeprof run` for this profile as a coloured terminal."""
    console = Console(record=True, width=WIDTH, file=StringIO(), force_terminal=True)
    console.print(f"$ pipeprof run {SCRIPT} photos\n", highlight=False)
    screen = render_terminal(first_screen(pipeprof.load(saved)), color=True)
    console.print(Text.from_ansi(screen))
    svg = console.export_svg(title="pipeprof", theme=MONOKAI, unique_id="pipeprof")
    # the picture must not load a font, so it uses one of the reader's
    svg = re.sub(r"(?s)@font-face \{.*?\}\s*", "", svg).replace("Fira Code, ", "")
    TERMINAL_PICTURE.write_text(svg, encoding="utf-8")


def take_picture(page: Path) -> None:
    with sync_playwright() as playwright:
        browser = chromium(playwright)
        opened = browser.new_page(
            viewport={"width": PAGE_WIDTH, "height": PAGE_HEIGHT},
            color_scheme="light",
            offline=True,
        )
        opened.goto(page.as_uri())
        opened.wait_for_function("document.documentElement.dataset.ready")
        opened.screenshot(path=PAGE_PICTURE)
        browser.close()


if __name__ == "__main__":
    main()
