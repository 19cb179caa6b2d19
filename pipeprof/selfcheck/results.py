"""What a self-check found. Times in seconds, shares 0..1; ``None`` is unknown, never zero."""

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
    """What a stage or a resource took per batch: by the pipeline's own clock, and by pipeprof."""

    name: str
    truth_s: float
    measured_s: float | None
    bar_s: float
    """So far apart they may be."""
    status: Status
    """*unknown*: pipeprof does not claim to have seen it."""


@dataclass(frozen=True)
class Claim:
    """Something that pipeprof says of the run, in words."""

    name: str
    expected: str
    found: str
    holds: bool


@dataclass(frozen=True)
class PipelineResult:
    """One pipeline, run and compared."""

    name: str
    says: str
    """What the pipeline does."""
    outcome: Outcome
    """*unsettled*: the machine was too busy for the pipeline to run as planned."""
    why: str = ""
    """Not *right*, in a sentence."""
    config: LoaderConfig | None = None
    batches: int = 0
    """Compared: those of the steady state."""
    batch_s: float = 0.0
    """Wall time of one."""
    figures: tuple[CheckedFigure, ...] = ()
    claims: tuple[Claim, ...] = ()
    runs: int = 0


@dataclass(frozen=True)
class CostComparison:
    """Ratios less 1, of one quantity per batch; 95 % intervals."""

    cost: float
    """Profiled against plain."""
    interval: tuple[float, float]
    control: float
    """Plain against plain: what the machine alone does to such a figure."""
    control_interval: tuple[float, float]
    status: Bar
    """Of the bar, where the control is quiet enough to say."""


@dataclass(frozen=True)
class ProfilerCost:
    """What profiling costs, on a loader of short batches."""

    batch_s: float
    """Wall time of a plain one."""
    rounds: int
    """In each a plain, a plain and a profiled run, in random order."""
    batches: int
    """Of each run."""
    wall: CostComparison
    cpu: CostComparison
    """CPU time of main and worker together."""


@dataclass(frozen=True)
class SelfCheck:
    """The whole of it."""

    created: str
    """ISO 8601, UTC."""
    environment: Environment
    quick: bool
    passed: bool
    """Nothing was off, failed, or beyond its bar."""
    pipelines: tuple[PipelineResult, ...]
    cost: ProfilerCost | None
    """``None`` when not asked for."""
    schema: Literal["pipeprof.selfcheck/1"] = SCHEMA

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)
