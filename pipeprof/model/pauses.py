"""What the training process did between two batches that was no training step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

PauseEvidence = Literal["loader", "named", "length"]
"""Another profiled loader was iterated meanwhile; `pipeprof.pause` named it; or the step was far
longer than all others, by the rule in ``docs/method/intervals.md``."""

BY_LENGTH: Final = -1
"""``BatchLog.pause_kind`` of a pause that only its length tells."""


@dataclass(frozen=True)
class PauseKind:
    """What was going on in a pause."""

    name: str
    """Of the other loader, or as `pipeprof.pause` was told; empty where only length tells."""
    evidence: PauseEvidence


@dataclass(frozen=True)
class PauseStats:
    """All pauses of one kind."""

    kind: PauseKind
    count: int
    total_s: float
    longest_s: float
