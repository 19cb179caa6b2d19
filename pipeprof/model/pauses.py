"""Define pauses: time between two batches that the training process did not spend in a training
step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

PauseEvidence = Literal["framework", "loader", "named", "length"]
"""How a pause was recognised.

- *framework*: the training framework began and ended it
- *loader*: another profiled loader was iterated
- *named*: `pipeprof.pause` declared it
- *length*: the step was far longer than all others, by the rule in ``docs/method/intervals.md``
"""

BY_LENGTH: Final = -1
"""Value of ``BatchLog.pause_kind`` for a pause that only its length reveals."""


@dataclass(frozen=True)
class PauseKind:
    """The cause of a pause, and how it was recognised."""

    name: str
    """Name of the other loader, of the `pipeprof.pause` or of the framework's phase; empty where
    only the length is known."""
    evidence: PauseEvidence


@dataclass(frozen=True)
class PauseStats:
    """Statistics of all pauses of one kind."""

    kind: PauseKind
    count: int
    total_s: float
    longest_s: float
