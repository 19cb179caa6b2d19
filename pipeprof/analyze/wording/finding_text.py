"""The templates of a finding.

Names in them that a finding does not give are attributes of the run (`analyze.advice.metrics`).
"""

from __future__ import annotations

from dataclasses import dataclass

from pipeprof.analyze.wording.template import Figures, fill
from pipeprof.model import Finding


@dataclass(frozen=True)
class FindingText:
    """Templates of one finding."""

    title: str
    evidence: str
    """Numbers of the run."""
    fix: str
    """In terms of what the user has set now."""

    def finding(self, code: str, figures: Figures, run: object) -> Finding:
        """This text with the figures of one run."""
        title, evidence, fix = (
            fill(each, figures, run).strip() for each in (self.title, self.evidence, self.fix)
        )
        return Finding(code, title, evidence, fix)
