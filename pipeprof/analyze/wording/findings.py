"""Turn a finding into words: its title, its evidence in numbers of the run, and its fix.

A template's name that the finding's figures lack is an attribute of `advice.metrics.Facts`.
"""

from __future__ import annotations

from typing import Final

from pipeprof.analyze.wording import loading_findings, pipeline, process_findings
from pipeprof.analyze.wording.template import Figures, fill, without_parts
from pipeprof.model import Finding

TEXTS: Final = {**loading_findings.TEXTS, **pipeline.FINDINGS, **process_findings.TEXTS}
"""The templates of each finding, by code."""


def finding(code: str, figures: Figures, run: object) -> Finding:
    """Return the finding with this code in words. ``run`` is its `Facts`."""
    title, evidence, fix = (fill(text, figures, run).strip() for text in TEXTS[code])
    return Finding(code, title, evidence, fix)


def title(code: str) -> str:
    """Return the part of the finding's title that is the same in every run."""
    return without_parts(TEXTS[code][0])
