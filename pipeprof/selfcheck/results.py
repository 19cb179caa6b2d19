"""Define the results of a self-check. Times are in seconds, shares 0..1; ``None`` means unknown."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

from pipeprof.model import Environment, LoaderConfig

SCHEMA: Final = "pipeprof.selfcheck/1"

Status = Literal["right", "off", "unknown"]
Outcome = Literal["right", "off", "unsettled", "skipped", "failed"]
Bar = Literal["within", "beyond", "inconclusive"]


@dataclass(frozen=True)
class CheckedFigure:
    """Seconds per batch of a stage or a resource: by the pipeline's own clock, and by pipeprof."""

    name: str
    truth_s: float
    measured_s: float | None
    bar_s: float
    """Allowed difference."""
    status: Status
    """*unknown*: pipeprof reports the figure as not observed."""


@dataclass(frozen=True)
class Claim:
    """A statement of pipeprof about the run."""

    name: str
    expected: str
    found: str
    holds: bool


@dataclass(frozen=True)
class PipelineResult:
    """The result of one pipeline."""

    name: str
    says: str
    """Description of the pipeline."""
    outcome: Outcome
    """*unsettled*: the machine was too busy for the pipeline to run as planned."""
    why: str = ""
    """Reason when the outcome is not *right*."""
    config: LoaderConfig | None = None
    batches: int = 0
    """Compared batches of the steady state."""
    batch_s: float = 0.0
    """Mean wall time of a batch."""
    figures: tuple[CheckedFigure, ...] = ()
    claims: tuple[Claim, ...] = ()
    runs: int = 0


@dataclass(frozen=True)
class CostComparison:
    """Ratios minus 1 of one quantity per batch, with 95 % intervals."""

    cost: float
    """Profiled against plain."""
    interval: tuple[float, float]
    control: float
    """Plain against plain: the difference that the machine alone causes."""
    control_interval: tuple[float, float]
    status: Bar
    """Whether the cost is within the limit; *inconclusive* where the control varies too much."""


@dataclass(frozen=True)
class ProfilerCost:
    """The overhead of profiling for a loader of short batches."""

    batch_s: float
    """Wall time of a batch without profiling."""
    rounds: int
    """Number of rounds, each with two plain runs and a profiled run in random order."""
    batches: int
    """Batches per run."""
    wall: CostComparison
    cpu: CostComparison
    """CPU time of the main process and the worker together."""


@dataclass(frozen=True)
class SelfCheck:
    """The result of the whole check."""

    created: str
    """ISO 8601, UTC."""
    environment: Environment
    quick: bool
    passed: bool
    """``False`` when anything was off, failed, or beyond its limit."""
    pipelines: tuple[PipelineResult, ...]
    cost: ProfilerCost | None
    """``None`` when it was not requested."""
    schema: Literal["pipeprof.selfcheck/1"] = SCHEMA

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)
