"""Open pages in a real browser."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pipeprof.report.document.build import Result
from tests.report.full import full_page
from tests.support.requirements import missing

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
Opener = Callable[..., "Page"]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Start Chromium headless and without a network (Debian: package chromium)."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        missing("no playwright, which drives a browser")
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        missing("no Chromium to open reports with (Debian: apt-get install chromium)")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=found, args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        yield browser
        browser.close()


@pytest.fixture
def opened(browser: Browser, tmp_path: Path) -> Iterator[Opener]:
    """Open the page of a result from a file.

    The test fails at its end if the page wrote to the console or made any other request.
    """
    contexts, messages = [], []

    def open_page(result: Result | str, **context: Any) -> Page:
        file = tmp_path / "report.html"
        text = result if isinstance(result, str) else full_page(result)
        file.write_text(text, encoding="utf-8")
        contexts.append(browser.new_context(offline=True, **context))
        page = contexts[-1].new_page()
        page.on("console", lambda message: messages.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: messages.append(f"error: {error}"))
        page.on("request", lambda request: messages.append(request.url))
        page.goto(file.as_uri())
        assert messages.pop(0) == file.as_uri()
        if context.get("java_script_enabled", True):
            page.wait_for_function("document.documentElement.dataset.ready", timeout=60_000)
        return page

    yield open_page
    for each in contexts:
        each.close()
    assert messages == []
