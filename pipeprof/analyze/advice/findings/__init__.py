"""Find the named pathologies that a run shows.

Each case is one function that returns the figures of the finding, or ``None``. To add one, write
the function into the file of its theme. Its docstring has three paragraphs: what it is, when it is
reported, how to fix it. Put its words into `analyze.wording`, and provoke it in a test.

A case that costs time is reported only where the accelerator is starved. Unknown figures are NaN,
for which every comparison is false, so a rule on an unknown figure does not hold. No case starts a
simulation: the predicted gain of more workers is in the `Facts`.
"""

from __future__ import annotations

from pipeprof.analyze.advice.findings import (
    cores,
    epochs,
    fetching,
    main_process,
    memory,
    order,
    pipelines,
    reading,
    run,
    sharding,
    start,
    storage,
    transfer,
)
from pipeprof.analyze.advice.findings.case import Case
from pipeprof.analyze.advice.metrics import Facts
from pipeprof.analyze.advice.proposal import Figures

_THEMES = (
    cores, storage, fetching, pipelines, reading, order, sharding, transfer, main_process, start,
    epochs, memory, run,
)  # fmt: skip
CASES = tuple(each for theme in _THEMES for each in vars(theme).values() if isinstance(each, Case))
"""All cases, in the order in which they are reported."""


def findings(facts: Facts) -> dict[str, Figures]:
    """Return the codes of the cases that the run shows, each with its figures."""
    found = {case.code: case.find(facts) for case in CASES}
    return {code: figures for code, figures in found.items() if figures is not None}
