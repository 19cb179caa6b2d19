"""Write docs/findings.md from the cases themselves: python scripts/findings_doc.py FILE"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from pipeprof.analyze.advice.findings import CASES
from pipeprof.analyze.advice.findings.case import Case
from pipeprof.analyze.wording.findings import title

_HEAD = """\
# Findings

pipeprof reports these problems when a run shows them, with the numbers of the run and a remedy in
terms of the current settings. A problem that costs time is reported only where the accelerator is
starved. Nothing is reported from unknown figures. The code of a finding is stable:
`pipeprof report FILE --json` has it under `findings`.

This page is written by `make docs` from `pipeprof/analyze/advice/findings/`. A test provokes each
finding.
"""


def document() -> str:
    """Return the page."""
    return "\n".join([_HEAD, *_contents(), *_themes()])


def _contents() -> Iterator[str]:
    yield "| code | problem |\n|---|---|"
    for case in CASES:
        yield f"| [`{case.code}`](#{case.code}) | {title(case.code)} |"
    yield ""


def _themes() -> Iterator[str]:
    for module, cases in groupby(CASES, lambda case: case.find.__module__):
        yield f"## {(sys.modules[module].__doc__ or '').strip().rstrip('.')}\n"
        for case in cases:
            yield _section(case)


def _section(case: Case) -> str:
    paragraphs = (" ".join(each.split()) for each in case.meaning.split("\n\n"))
    return "\n\n".join([f"### {case.code}", f"**{title(case.code)}.**", *paragraphs]) + "\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(document(), encoding="utf-8")
