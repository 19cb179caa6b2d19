"""Define what a finding's case is: a stable code, and a function that looks for it in a run.

The words of a finding are in `analyze.wording.findings`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from inspect import getdoc

from pipeprof.analyze.advice.metrics import Facts
from pipeprof.analyze.advice.proposal import Figures


@dataclass(frozen=True)
class Case:
    """One pathology that a run may show."""

    code: str
    """The stable name, e.g. ``slow-start``."""
    find: Callable[[Facts], Figures | None]
    """Return the figures of the finding; ``None`` where the run does not show it."""

    @property
    def meaning(self) -> str:
        """The docstring: what it is, when it is reported, the fix. It goes to docs/findings.md."""
        return getdoc(self.find) or ""


def case(code: str) -> Callable[[Callable[[Facts], Figures | None]], Case]:
    """Decorate a function that returns the figures of a finding, or ``None``, as a `Case`."""
    return lambda find: Case(code, find)
