"""What charts show, as data: a renderer that can draw decides how."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from pipeprof.model import BatchLog, Difference, StageStats

Interval: TypeAlias = "tuple[float, float]"


@dataclass(frozen=True)
class Roofline:
    """Ceilings, in samples/s, against what the accelerator asks."""

    ceilings: Mapping[str, float]
    demand: float | None


@dataclass(frozen=True)
class StageShares:
    """Mean seconds of each part of a batch's journey, in order; no second is in two parts."""

    parts: Mapping[str, float]


@dataclass(frozen=True)
class StageSpread:
    """p50, p95 and p99 of each stage."""

    stages: Mapping[str, StageStats]


@dataclass(frozen=True)
class Blame:
    """Seconds of stall charged to each cause, the most first."""

    seconds: Mapping[str, float]
    stall_s: float


@dataclass(frozen=True)
class WorkerStages:
    """Of each worker the mean seconds of its stages."""

    workers: Mapping[str, Mapping[str, float]]
    order: tuple[str, ...]
    """Of the stages."""


@dataclass(frozen=True)
class Point:
    """The samples/s of one setting or run. Where only a range is known, there is no value."""

    setting: str
    known_by: str
    """*measured*, *predicted* or *open*."""
    samples_per_s: float | None
    interval: Interval | None


@dataclass(frozen=True)
class Throughputs:
    points: tuple[Point, ...]
    demand: float | None


@dataclass(frozen=True)
class SweepPoint:
    """One setting of a sweep, as measured or predicted."""

    series: str
    """Its data set, and its batch size where there are several."""
    workers: int
    samples_per_s: float
    interval: Interval
    known_by: Literal["measured", "predicted"]
    best: bool
    """The fastest of its series with so many workers."""
    text: str


@dataclass(frozen=True)
class OverWorkers:
    """Throughput over workers, a line for each series."""

    points: tuple[SweepPoint, ...]
    demand: float | None


@dataclass(frozen=True)
class Differences:
    """Seconds of each stage that a later run takes more or less, per batch or sample."""

    stages: Mapping[str, Difference]
    per: str


@dataclass(frozen=True)
class Part:
    """Consecutive batches of a run."""

    begin_s: float
    """Since the first batch kept was asked for."""
    end_s: float
    samples_per_s: float | None
    """``None``: it is not known how many samples batches had."""
    wait_share: float
    """0..1 of the time."""


@dataclass(frozen=True)
class OverTime:
    """One figure of each part of a run."""

    figure: Literal["samples/s", "waited"]
    parts: tuple[Part, ...]
    shaded: Interval
    """Seconds in which the batches of the `Timeline` lie."""


@dataclass(frozen=True)
class Stretch:
    """Consecutive batches of a log."""

    first: int
    """Place in the log."""
    last: int
    """Behind its end."""
    wait_share: float
    """0..1 of the stretch's time that main waited."""


@dataclass(frozen=True)
class Timeline:
    """Which worker fetched what when, and for what main waited."""

    log: BatchLog
    stretch: Stretch
    ahead: int
    """Batches that may be under way when one is delivered."""


@dataclass(frozen=True)
class ClusterTime:
    """What the time of so many accelerators goes into: part → share, which add up to 1."""

    clusters: Mapping[str, Mapping[str, float]]


ChartData: TypeAlias = (
    Roofline
    | StageShares
    | StageSpread
    | Blame
    | WorkerStages
    | Throughputs
    | OverWorkers
    | Differences
    | OverTime
    | Timeline
    | ClusterTime
)
