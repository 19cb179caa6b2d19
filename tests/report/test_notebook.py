"""Notebook reports: plain, escaped and small, with styles that affect nothing else."""

import re

import hypothesis
import pytest
from hypothesis import strategies as st

from pipeprof.model import Profile, SweepResult
from pipeprof.report.notebook.render import render_notebook
from tests.contracts.report_contract import ReportContract
from tests.contracts.report_samples import renamed
from tests.report.full import full_notebook
from tests.report.html.pages import HOSTILE, PAGES, links, read
from tests.request_samples import sample_requests
from tests.samples import sample_profile
from tests.strategies import values
from tests.sweep_samples import sample_sweep


class TestContract(ReportContract):
    def render(self, document):
        return read(render_notebook(document))


@pytest.fixture(params=PAGES)
def shown(request):
    return full_notebook(PAGES[request.param])


def test_it_is_small_and_runs_and_fetches_nothing(shown):
    assert len(shown.encode()) < 50_000
    assert links(shown) == []
    assert not re.search(r"<script|<link|<iframe|javascript:| on\w+=| id=|@import|url\(", shown)


def test_its_styles_affect_nothing_else(shown):
    (style,) = re.findall("<style>(.*?)</style>", shown, re.DOTALL)
    selectors = [
        selector.strip()
        for rule in style.split("}")[:-1]
        for selector in rule.partition("{")[0].split(",")
    ]
    assert len(selectors) > 10
    assert all(re.match(r"(div)?\.pipeprof-shown", selector) for selector in selectors)


def test_its_elements_are_all_closed(shown):
    for element in ("div", "table", "tbody", "tr", "td", "th", "details", "summary", "p", "pre"):
        opened = len(re.findall(rf"<{element}[ >]", shown))
        assert opened == shown.count(f"</{element}>"), element


@pytest.mark.parametrize("result", [sample_profile(), sample_sweep()], ids=["profile", "sweep"])
def test_names_cannot_inject_html(result):
    hostile, plain = (full_notebook(renamed(result, text)) for text in (HOSTILE, "harmless"))
    for opened in ("<script", "</script", "<!--", "<b>", "\u2028"):
        assert hostile.count(opened) == plain.count(opened), opened
    assert "</script><script>window.harmed" in read(hostile), "it is shown as it is"


def test_the_answer_is_open_and_the_evidence_can_be_opened():
    profile = sample_profile(requests=sample_requests())
    both = full_notebook(profile) + full_notebook(sample_sweep())
    sections = dict.fromkeys(re.findall("<details( open)?><summary><b>(.*?)</b>", both))
    closed = {title for state, title in sections if not state}
    assert closed >= {"Storage requests", "Workers side by side", "Trials", "Confidence"}
    opened = {title for state, title in sections if state}
    assert {"Recommendation", "Where the time goes", "Throughput ceilings",
            "What the accelerator waited for"} <= opened  # fmt: skip


def test_bars_are_hidden_from_screen_readers():
    shown = full_notebook(sample_profile())
    bars = re.findall(r'<td class="bar" aria-hidden="true">([█▌ ]*)</td>', shown)
    assert len(bars) > 5
    assert "█" not in re.sub(r'<td class="bar".*?</td>', "", shown)


@hypothesis.settings(max_examples=15)
@hypothesis.given(st.one_of(values(Profile), values(SweepResult)))
def test_extreme_values_are_shown(result):
    assert full_notebook(result).endswith("</div>\n")
