"""What a named pathology is: a stable code, and how a run shows it.

What it says in words is in `analyze.wording.findings`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from inspect import getdoc

from pipeprof.analyze.advice.metrics import Facts
from pipeprof.analyze.advice.proposal import Figures


@dataclass(frozen=True)
class Case:
    code: str
    """Stable, e.g. ``few-splits``."""
    find: Callable[[Facts], Figures | None]

    @property
    def meaning(self) -> str:
        """What it is, how it is seen, and what cures it; of these ``docs/findings.md`` is made."""
        return getdoc(self.find) or ""


def case(code: str) -> Callable[[Callable[[Facts], Figures | None]], Case]:
    """Make a case of a function that returns the figures of a finding, or ``None``."""
    return lambda find: Case(code, find)
