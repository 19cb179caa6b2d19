"""Named pathologies that a run shows. One function per case; each returns its figures or None.

To add one: write the function into the file of its theme, say in its docstring what it is, how it
is seen and what cures it, put its words into `analyze.wording`, and provoke it in a test. A case
speaks of what costs time only where the accelerator is starved, and only on what is known: unknown
figures are NaN, with which no comparison holds. No case simulates: what other numbers of workers
would bring is in the facts.
"""

from __future__ import annotations

from pipeprof.analyze.advice.findings import (
    cores,
    fetching,
    main_process,
    memory,
    order,
    reading,
    run,
    start,
    storage,
    transfer,
)
from pipeprof.analyze.advice.findings.case import Case
from pipeprof.analyze.advice.metrics import Facts
from pipeprof.analyze.advice.proposal import Figures

_THEMES = (
    cores, storage, fetching, reading, order, transfer, main_process, start, memory, run,
)  # fmt: skip
CASES = tuple(each for theme in _THEMES for each in vars(theme).values() if isinstance(each, Case))
"""In the order in which they are reported."""


def findings(facts: Facts) -> dict[str, Figures]:
    """The codes of what the run shows, each with its figures."""
    found = {case.code: case.find(facts) for case in CASES}
    return {code: figures for code, figures in found.items() if figures is not None}
