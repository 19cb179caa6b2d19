"""Runs the demo, and puts what it prints and the beginning of its page into the README.

make setup && PATH=.venv/bin:$PATH python -m scripts.demo_readme     # needs Chromium
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

from scripts.viewer_check import ROOT, chromium

PICTURE = ROOT / "docs/img/report.png"
WIDTH, HEIGHT = 1080, 1500


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
    take_picture(next((ROOT / "demo/before").glob("*.html")))


def circumstances() -> str:
    return (
        f"All that `make demo` printed on a machine with {os.cpu_count()} cores, on which "
        f"{os.getloadavg()[1]:.0f} processes wanted one meanwhile, its own among them:"
    )


def take_picture(page: Path) -> None:
    with sync_playwright() as playwright:
        browser = chromium(playwright)
        opened = browser.new_page(
            viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light", offline=True
        )
        opened.goto(page.as_uri())
        opened.wait_for_function("document.documentElement.dataset.ready")
        opened.screenshot(path=PICTURE)
        browser.close()


if __name__ == "__main__":
    main()
