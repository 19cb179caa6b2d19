"""A picture of the beginning of a report's page, for the README; needs Chromium.

python -m scripts.screenshot demo/before/train_photos.py-61.html docs/img/report.png
"""

from __future__ import annotations

import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

from scripts.viewer_check import chromium

WIDTH, HEIGHT = 1080, 1500


def main(page: str, picture: str) -> None:
    with sync_playwright() as playwright:
        browser = chromium(playwright)
        opened = browser.new_page(
            viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light", offline=True
        )
        opened.goto(Path(page).resolve().as_uri())
        opened.wait_for_function("document.documentElement.dataset.ready")
        opened.screenshot(path=picture)
        browser.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
