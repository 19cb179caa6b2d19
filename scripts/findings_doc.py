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

The pathologies that pipeprof names when a run shows them, each with this run's numbers and a cure
in terms of what is set now. What costs time is named only where the accelerator is starved, and
nothing is named on figures that are not known. The code of a finding is stable:
`pipeprof report FILE --json` has it under `findings`.

Written by `make docs` from `pipeprof/analyze/advice/findings/`; each is provoked in a test.
"""


def document() -> str:
    return "\n".join([_HEAD, *_contents(), *_themes()])


def _contents() -> Iterator[str]:
    yield "| code | what |\n|---|---|"
    for case in CASES:
        yield f"| [`{case.code}`](#{case.code}) | {title(case.code)} |"
    yield ""


def _themes() -> Iterator[str]:
    for module, cases in groupby(CASES, lambda case: case.find.__module__):
        yield f"## {(sys.modules[module].__doc__ or '').strip().rstrip('.')}\n"
        for case in cases:
            yield _told(case)


def _told(case: Case) -> str:
    paragraphs = (" ".join(each.split()) for each in case.meaning.split("\n\n"))
    return "\n\n".join([f"### {case.code}", f"**{title(case.code)}.**", *paragraphs]) + "\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(document(), encoding="utf-8")
