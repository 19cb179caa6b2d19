"""Write docs/findings.md from the docstrings of the cases: python scripts/findings_doc.py FILE"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from pipeprof.analyze.advice.findings import CASES
from pipeprof.analyze.advice.findings.case import Case
from pipeprof.analyze.wording.findings import title
from pipeprof.units import capital

_HEAD = """\
# Findings

A finding is a known problem of data loading. pipeprof reports it with the numbers of your run, and
with a fix that starts from your present settings. Findings about lost time are reported only where
the accelerator is starved. No finding is based on unknown figures. The code of a finding is stable:
`pipeprof report FILE --json` has it under `findings`.

`make docs` writes this page from `pipeprof/analyze/advice/findings/`. A test provokes each finding.
"""


def document() -> str:
    return "\n".join([_HEAD, *_contents(), *_themes()])


def _contents() -> Iterator[str]:
    yield "| code | finding |\n|---|---|"
    for case in CASES:
        yield f"| [`{case.code}`](#{case.code}) | {title(case.code)} |"
    yield ""


def _themes() -> Iterator[str]:
    for module, cases in groupby(CASES, lambda case: case.find.__module__):
        yield f"## {_heading(sys.modules[module].__doc__ or '')}\n"
        for case in cases:
            yield _section(case)


def _heading(docstring: str) -> str:
    return capital(docstring.removeprefix("Findings about ").rstrip("."))


def _section(case: Case) -> str:
    paragraphs = (" ".join(each.split()) for each in case.meaning.split("\n\n"))
    return "\n\n".join([f"### {case.code}", f"**{title(case.code)}.**", *paragraphs]) + "\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(document(), encoding="utf-8")
