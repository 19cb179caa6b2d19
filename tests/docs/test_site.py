"""The site is built strictly: each link, anchor and documented name leads somewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import pipeprof


@pytest.fixture(scope="module")
def site(repo: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=repo, env=quiet, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_every_page_is_built(site: Path, repo: Path) -> None:
    pages = {path.relative_to(repo / "docs") for path in (repo / "docs").rglob("*.md")}
    assert {path.with_suffix(".html") for path in pages} <= {
        path.relative_to(site) for path in site.rglob("*.html")
    }


def test_every_public_name_is_on_the_page_of_the_api(site: Path) -> None:
    page = (site / "reference" / "api.html").read_text()
    shown = set(re.findall(r'id="pipeprof\.(\w+)"', page))
    assert shown == {*pipeprof.__all__} - {"__version__"}


def test_pages_load_nothing_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        loaded = re.findall(
            r'<(?:link|script|img)[^>]*(?:href|src)="(https?:[^"]*)"', page.read_text()
        )
        assert loaded == [], page
