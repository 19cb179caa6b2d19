"""Markdown reports, checked through a Markdown parser, which shows what a reader sees.

After a change that is meant to show, write the golden files anew and read their diff:

    PIPEPROF_UPDATE_GOLDEN=1 pytest tests/report/test_markdown.py
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import hypothesis
import pytest
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from pipeprof.report.document.blocks import (
    Block,
    Column,
    Document,
    FigureList,
    LabelledFigure,
    Paragraph,
    Section,
    Table,
    row,
)
from pipeprof.report.markdown.render import render_markdown
from pipeprof.report.text import clean
from tests.comparisons import sample_comparison, three_runs
from tests.contracts.report_contract import ReportContract
from tests.contracts.report_samples import Result, renamed
from tests.report.full import full_markdown
from tests.report.html.pages import read
from tests.samples import RECOMMENDATION, sample_profile
from tests.sweep_samples import sample_conversion, sample_sweep

GOLDEN = Path(__file__).parent.parent / "golden"
PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])
LINKED = re.compile(r"@\w|#\w|://|www\.|GH-\d|:\w+:")
"""Texts that GitHub turns into a link or a picture, unless they are code."""
MARKS = "`*_[]()<>|\\~#@:/!&$-+=.1 \n"
TEXTS = st.one_of(st.text(MARKS + "aé🚀", max_size=24), st.text(max_size=12))


class TestContract(ReportContract):
    def render(self, document: Document) -> str:
        return read(shown(render_markdown(document)))


def shown(markdown: str) -> str:
    html: str = PARSER.render(markdown)
    return html


@pytest.mark.parametrize(
    ("name", "result"),
    [
        ("profile", sample_profile()),
        ("sweep", sample_sweep()),
        ("conversion", sample_conversion()),
        ("comparison", three_runs()),
    ],
)
def test_it_reads_like_the_golden_file(name: str, result: Result) -> None:
    file = GOLDEN / f"{name}.md"
    if os.environ.get("PIPEPROF_UPDATE_GOLDEN"):
        file.write_text(full_markdown(result), encoding="utf-8")
    assert full_markdown(result) == file.read_text(encoding="utf-8")


def test_it_has_every_section_and_table() -> None:
    html = shown(full_markdown(sample_profile()))
    titles = [re.sub(" \\(.*", "", title) for title in re.findall("<h3>(.*?)</h3>", html)]
    assert titles == [
        "Recommendation", "Throughput ceilings", "Where the time goes",
        "CPU time and waits of a batch", "What the accelerator waited for", "Pauses",
        "Timeline of batches", "Throughput, measured and predicted", "Workers side by side",
        "Storage requests", "Findings", "Confidence",
    ]  # fmt: skip
    assert html.count("<table>") == 9
    assert "<strong>↳ decode</strong>" in html, "the stage to blame stands out"


@pytest.mark.parametrize("result", [sample_profile(), sample_sweep(), three_runs()])
def test_user_given_text_is_never_interpreted(result: Result) -> None:
    hostile = "@team #41 https://x.y/z :tada: <b>b</b> ![p](q) **b** ~~s~~ a|b \\| $x$ GH-7 &amp;"
    html = shown(full_markdown(renamed(result, hostile)))
    tags = {"p", "strong", "code", "pre", "h3", "ul", "li", "table", "thead", "tbody", "tr", "th",
            "td"}  # fmt: skip
    assert set(re.findall(r"<([a-z0-9]+)", html)) <= tags
    outside = re.sub(r"<code.*?</code>", "", html, flags=re.DOTALL)
    assert not LINKED.search(re.sub(r"<[^>]*>|&#?\w+;", "", outside))
    assert " ".join(hostile.split()) in " ".join(read(html).split())


@hypothesis.settings(max_examples=150)
@hypothesis.given(TEXTS, TEXTS)
def test_text_of_cells_and_lines_is_shown_verbatim(one: str, other: str) -> None:
    table = Table((Column("a"), Column("b")), (row(f"x{one}", other), row(other, one)))
    figures = FigureList((LabelledFigure("label", other),))
    html = shown(render_markdown(of(Paragraph(one), table, figures)))
    cells = re.findall(r"<td.*?>(.*?)</td>", html, re.DOTALL)
    wanted = [f"x{one}", other, other, one]
    assert [plain(cell) for cell in cells] == [words(text) for text in wanted]
    assert [plain(line) for line in re.findall(r"<p>(.*?)</p>", html, re.DOTALL)] == [
        words(text) for text in [one] if words(text)
    ]
    assert plain(re.findall(r"<li>(.*?)</li>", html, re.DOTALL)[0]) == words(f"label {other}")


def of(*blocks: Block) -> Document:
    return Document("a test", "test", (Section("test", "", blocks),))


def words(text: str) -> str:
    return " ".join(clean(text).split())


def plain(html: str) -> str:
    """Return the text of an element that may only contain code and bold text."""
    inner = re.sub(r"</?(code|strong)>", "", html)
    assert "<" not in inner
    return " ".join(read(inner).split())


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("2 workers, num_workers=4 (95 %: 1.2–3.4)", "2 workers, num_workers=4 (95 %: 1.2–3.4)"),
        ("ask @ana", "ask `@ana`"),
        ("worker #3", "worker `#3`"),
        ("s3://bucket/x.csv", "`s3://bucket/x.csv`"),
        ("__init__", "`__init__`"),
        ("a|b", "<code>a&#124;b</code>"),
        ("`tick", "`` `tick ``"),
        ("# no heading", "`#` no heading"),
        ("1. no list", "`1.` no list"),
    ],
)
def test_only_words_that_would_be_interpreted_are_code(text: str, written: str) -> None:
    assert render_markdown(of(Paragraph(text))) == f"{written}\n"


def test_code_to_paste_ends_where_it_ends() -> None:
    code = "x = '''\n```\nhello\n```\n'''"
    advice = replace(RECOMMENDATION, code=code)
    html = shown(full_markdown(sample_profile(recommendations=(advice,))))
    (block,) = re.findall(r"<pre><code.*?>(.*?)</code></pre>", html, re.DOTALL)
    assert block.splitlines() == code.splitlines()


def test_the_effects_of_a_change_follow_it() -> None:
    lines = full_markdown(sample_profile()).splitlines()
    assert "**num_workers: 2 → 4**" in lines
    assert lines[lines.index("**num_workers: 2 → 4**") + 2].startswith("- **gain** predicted")


def rows(markdown: str, title: str) -> list[Sequence[str]]:
    part = markdown.partition(f"### {title}")[2].partition("###")[0]
    return [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in part.splitlines()
        if line.startswith("| ")
    ]


def test_a_comparison_shows_before_and_after() -> None:
    found = rows(full_markdown(sample_comparison()), "What was changed")
    assert ["loader", "pin_memory", "off", "on"] in found
    assert ["data", "bytes", "1.07 GB", "2.15 GB"] in found
