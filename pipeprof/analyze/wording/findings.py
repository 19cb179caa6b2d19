"""What each finding says: its title, the numbers of the run, and what to do.

Names in its templates that a finding does not give are attributes of the run
(`analyze.advice.metrics`).
"""

from __future__ import annotations

from typing import Final

from pipeprof.analyze.wording import loading_findings, process_findings
from pipeprof.analyze.wording.template import Figures, fill, without_parts
from pipeprof.model import Finding

TEXTS: Final = {**loading_findings.TEXTS, **process_findings.TEXTS}
"""By code."""


def finding(code: str, figures: Figures, run: object) -> Finding:
    """The finding with this code, in words."""
    title, evidence, fix = (fill(text, figures, run).strip() for text in TEXTS[code])
    return Finding(code, title, evidence, fix)


def title(code: str) -> str:
    """What the finding is called in every run."""
    return without_parts(TEXTS[code][0])
