"""The HTML page as text: its contract, escaping, size, and no outside resources."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import hypothesis
import pytest
from hypothesis import strategies as st

from benchmarks.html_report import profile_of
from pipeprof.model import Profile, SweepResult
from pipeprof.report.document.blocks import Document
from pipeprof.report.html.glossary import STAGES
from pipeprof.report.html.page import LIBRARIES, in_script, render_html
from tests.contracts.report_contract import ReportContract
from tests.contracts.report_samples import CONTROLS, Result, renamed
from tests.report.full import full_page
from tests.report.html.pages import HOSTILE, PAGES, links, read
from tests.samples import sample_profile
from tests.strategies import values
from tests.sweep_samples import sample_sweep

PROFILE_SECTIONS = [
    "recommendation", "ceilings", "stages", "resources", "stall", "pauses", "timeline",
    "throughput", "workers", "requests", "findings", "confidence", "words",
]  # fmt: skip
"""Section names in their order."""
SWEEP_SECTIONS = ["recommendation", "settings", "trials", "untried", "confidence", "words"]
VENDORED = {
    "vega.min.js": "8f6a3587cf8d4f42c7e08120e3eb05d067e746d554e39d2dcf52acc0bd5ba28f",
    "vega-lite.min.js": "35a9821df838825b05a6a73e9414b58747a1b18321583858ed903c66393a5c7e",
}
"""SHA-256 of the files in the npm packages vega 6.4.0 and vega-lite 6.4.3."""


class TestContract(ReportContract):
    def render(self, document: Document) -> str:
        return read(render_html(document))


@pytest.fixture(scope="module", params=PAGES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def page(name: str) -> str:
    return full_page(PAGES[name])


def sections(page: str) -> dict[str, str]:
    found = re.findall(r'<section id="([a-z-]+)".*?>(.*?)</section>', page, re.DOTALL)
    return {name: read(f"<div>{body}</div>") for name, body in found}


def test_every_section_is_there_in_order_and_says_something(name: str, page: str) -> None:
    found = sections(page)
    wanted = PROFILE_SECTIONS if isinstance(PAGES[name], Profile) else SWEEP_SECTIONS
    assert [each for each in found if each in wanted] == wanted
    assert ("conversion" in found) == (name == "conversion")
    for section, text in found.items():
        assert len(text.splitlines()) > 1, f"{section} has only its title"


def test_a_page_is_smaller_than_a_mail_attachment_may_be(page: str) -> None:
    assert len(page.encode()) < 1_500_000


@hypothesis.settings(max_examples=25)
@hypothesis.given(st.one_of(values(Profile), values(SweepResult)))
def test_extreme_values_make_a_page(result: Result) -> None:
    page = full_page(result)
    assert page.endswith("</html>")
    assert list(specs(page)) == re.findall('data-chart="([a-z0-9-]+)"', page)


@pytest.mark.slow
def test_a_long_run_has_no_larger_page_than_a_short_one() -> None:
    short, long = (len(full_page(profile_of(batches)).encode()) for batches in (2000, 40_000))
    assert long == pytest.approx(short, rel=0.05)


def test_it_points_to_nothing_outside_itself(page: str) -> None:
    inside = set(re.findall(r' id="([a-z0-9-]+)"', page))
    for link in links(page):
        assert link == "data:," or link[1:] in inside, link
    assert "@import" not in page
    assert "default-src 'none'" in page


def specs(page: str) -> dict[str, dict[str, object]]:
    found = re.search(r'<script type="application/json" id="specs">(.*?)</script>', page, re.DOTALL)
    assert found
    told: dict[str, dict[str, object]] = json.loads(found[1])["charts"]
    return told


def test_each_chart_has_a_table_and_a_description(page: str) -> None:
    drawn = re.findall(r'data-chart="([a-z0-9-]+)" role="img" aria-label="([^"]+)"', page)
    told = specs(page)
    assert [name for name, _ in drawn] == list(told)
    assert all(len(words) > 20 for _, words in drawn)


@pytest.mark.parametrize("result", [sample_profile(), sample_sweep()], ids=["profile", "sweep"])
def test_names_cannot_inject_html(result: Result) -> None:
    page = full_page(renamed(result, HOSTILE))
    plain = full_page(renamed(result, "harmless"))
    for opened in ("<script", "</script", "<!--", "<b>", "\u2028"):
        assert page.count(opened) == plain.count(opened), opened
    assert "</script><script>window.harmed" in read(page), "it is shown as it is"


def test_json_in_a_script_ends_no_script_and_is_read_back_as_it_was() -> None:
    hostile = {"name": HOSTILE.replace("\u2028", ""), "rows": ["&", "<", "]]>", 1.5, None]}
    text = str(in_script(hostile))
    assert not re.search("[<>&]", text)
    assert json.loads(text) == hostile


def test_charts_contain_no_control_characters() -> None:
    page = full_page(renamed(sample_sweep(), CONTROLS))
    assert not any(c in json.dumps(specs(page), ensure_ascii=False) for c in "\x1b\r\x07\u202e")


def test_code_to_paste_keeps_its_lines() -> None:
    page = full_page(sample_profile())
    code = re.search(r"<pre[^>]*><code>(.*?)</code>", page, re.DOTALL)
    advised = sample_profile().recommendations[0].code
    assert code
    assert advised
    assert read(code[1].replace("\n", "<p></p>")).split() == advised.split()
    assert code[1].count("\n") == len(advised.splitlines())


def test_unknown_is_never_drawn(page: str, name: str) -> None:
    """A stage of unknown length is in no chart, not even as zero."""
    if name == "unheard-of":
        assert "fetch" not in json.dumps([specs(page).get("journey"), specs(page).get("spread")])
        found = sections(page)
        assert "Unknown" in found["ceilings"]
        assert "unknown" in found["stages"]


def test_stages_are_explained_as_in_the_documentation(repo: Path) -> None:
    table = (repo / "docs/concepts.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| (.*?) \| (.*?) \|$", table, re.MULTILINE)
    documented = {name: f"{where}: {what}".replace("`", "") for name, where, what in rows}
    assert documented == STAGES


def test_the_libraries_are_those_that_were_published(repo: Path) -> None:
    folder = repo / "pipeprof/report/html/vendor"
    found = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in LIBRARIES}
    assert found == VENDORED
