"""Sentences from codes and figures."""

from __future__ import annotations

import ast
import re
from functools import cache
from math import nan
from pathlib import Path
from string import Formatter

import pytest

from pipeprof.analyze.advice.findings import CASES
from pipeprof.analyze.advice.metrics import Facts
from pipeprof.analyze.wording import advice, findings
from pipeprof.analyze.wording.template import fill, without_parts
from pipeprof.model import LoaderConfig

ADVICE = Path(__file__).parents[2] / "pipeprof" / "analyze" / "advice"


def test_figures_have_units_and_nouns() -> None:
    figures = {"s": 0.0032, "b": 1.5e9, "n": 1, "m": 2, "share": 0.123}
    text = "{s:duration}, {b:bytes}, {n:n copy|copies}, {m:n copy|copies}, {share:percent}"
    assert fill(text, figures) == "3.20 ms, 1.5 GB, 1 copy, 2 copies, 12 %".replace("1.5", "1.50")


def test_a_part_with_an_unknown_figure_is_left_out() -> None:
    assert fill("It took {s:duration}« of {whole:duration}».", {"s": 1, "whole": None}) == (
        "It took 1.00 s."
    )
    assert fill("a« {x:.1f}»", {"x": nan}) == "a"
    assert fill("{x:duration}", {"x": nan}) == "unknown"


def test_a_part_may_depend_on_a_condition() -> None:
    text = "«{few:if}few»«{few:unless}many»"
    assert [fill(text, {"few": few}) for few in (True, False, None)] == ["few", "many", "many"]
    assert without_parts(f"so {text}") == "so "


def test_other_names_are_those_of_the_run() -> None:
    assert fill("{num_workers:n worker}", {}, LoaderConfig(3, kind="map")) == "3 workers"
    assert fill("{misspelt}", {}, LoaderConfig(3, kind="map")) == "unknown"


def test_attributes_of_what_is_unknown_are_unknown() -> None:
    figures = {"no": None, "run": LoaderConfig(3, kind="map")}
    assert fill("«{no.rate.mean}, »«{no[0]}, »{run.batch_size}", figures) == "unknown"
    with pytest.raises(AttributeError):
        fill("{run.misspelt}", figures)


def test_each_finding_has_words() -> None:
    assert {case.code for case in CASES} == set(findings.TEXTS)


@pytest.mark.parametrize("code", [*findings.TEXTS, *advice.TEXTS])
def test_each_name_is_a_figure_of_the_advice_or_of_the_run(code: str) -> None:
    text = findings.TEXTS.get(code) or advice.TEXTS[code]
    names = {
        re.split(r"[.\[]", name)[0]
        for template in (text if isinstance(text, tuple) else vars(text).values())
        for part in re.split("[«»]", template)
        for _, name, _, _ in Formatter().parse(part)
        if name
    }
    assert {name for name in names if not hasattr(Facts, name)} <= given() | set(
        Facts.__dataclass_fields__
    )


@cache
def given() -> frozenset[str]:
    """Words and arguments in the advice's own code, among which are the names of its figures."""
    nodes = [
        node for path in ADVICE.rglob("*.py") for node in ast.walk(ast.parse(path.read_text()))
    ]
    words = {node.value for node in nodes if isinstance(node, ast.Constant)}
    arguments = {node.arg for node in nodes if isinstance(node, ast.keyword)}
    return frozenset(map(str, words | arguments))
