"""What a named pathology is: a stable code, a title, and how a run shows it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from inspect import getdoc

from pipeprof.analyze.advice.metrics import Facts
from pipeprof.model import Finding


@dataclass(frozen=True)
class Seen:
    """What a run shows of a case."""

    evidence: str
    """Numbers of this run."""
    fix: str
    """In terms of what the user has set now."""
    more: str = ""
    """To the title, where the run tells more."""


@dataclass(frozen=True)
class Case:
    code: str
    """Stable, e.g. ``few-splits``."""
    title: str
    look: Callable[[Facts], Seen | None]

    def __call__(self, facts: Facts) -> Finding | None:
        seen = self.look(facts)
        if seen is None:
            return None
        return Finding(self.code, self.title + seen.more, seen.evidence, seen.fix)

    @property
    def meaning(self) -> str:
        """What it is, how it is seen, and what cures it; of these ``docs/findings.md`` is made."""
        return getdoc(self.look) or ""


def case(code: str, title: str) -> Callable[[Callable[[Facts], Seen | None]], Case]:
    return lambda look: Case(code, title, look)
