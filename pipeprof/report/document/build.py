"""From a result to its document."""

from __future__ import annotations

from typing import TypeAlias

from pipeprof.model import Comparison, Profile, SweepResult
from pipeprof.report.document.blocks import Document
from pipeprof.report.document.brief import brief
from pipeprof.report.document.comparison import comparison_document
from pipeprof.report.document.profile.first_screen import profile_first_screen
from pipeprof.report.document.profile.whole import profile_document
from pipeprof.report.document.sweep.first_screen import sweep_first_screen
from pipeprof.report.document.sweep.whole import sweep_document

Result: TypeAlias = "Profile | SweepResult | Comparison"


def full_report(result: Result) -> Document:
    """All that is known. Never fails on a valid ``result``, whatever its names hold."""
    if isinstance(result, Profile):
        return profile_document(result)
    return (
        sweep_document(result) if isinstance(result, SweepResult) else comparison_document(result)
    )


def first_screen(result: Profile | SweepResult) -> Document:
    """The answer alone, in the height of a terminal."""
    if isinstance(result, Profile):
        return brief(profile_first_screen(result))
    return brief(sweep_first_screen(result))
