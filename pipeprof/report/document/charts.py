"""What charts show, as data: a renderer that can draw decides how."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from pipeprof.model import BatchLog, StageStats

Interval: TypeAlias = "tuple[float, float]"
Standing: TypeAlias = Literal["worst", "best", "demand", ""]
"""What makes a bar stand out; *demand*: it is what the accelerator asks."""


@dataclass(frozen=True)
class Bar:
    """One value, in the unit of its chart."""

    name: str
    value: float
    label: str
    """Written at the end of the bar, or empty."""
    text: str
    """What it says, in words."""
    standing: Standing = ""
    interval: Interval | None = None


@dataclass(frozen=True)
class Bars:
    """Values side by side, in order. They may be below 0."""

    unit: Literal["samples/s", "s"]
    title: str
    """Of their axis."""
    bars: tuple[Bar, ...]
    demand: float | None = None
    """What the accelerator asks, in the same unit."""


@dataclass(frozen=True)
class Stacks:
    """Of each row its parts, which follow one another: row → part → value."""

    unit: Literal["s", "share"]
    title: str
    """Of their axis."""
    rows: Mapping[str, Mapping[str, float]]


@dataclass(frozen=True)
class StageSpread:
    """p50, p95 and p99 of each stage."""

    stages: Mapping[str, StageStats]


@dataclass(frozen=True)
class ThroughputPoint:
    """The samples/s of one setting or run. Where only a range is known, there is no value."""

    setting: str
    known_by: str
    """*measured*, *predicted* or *open*."""
    samples_per_s: float | None
    interval: Interval | None


@dataclass(frozen=True)
class Throughputs:
    points: tuple[ThroughputPoint, ...]
    demand: float | None


@dataclass(frozen=True)
class SweepPoint:
    """One setting of a sweep, as measured or predicted."""

    series: str
    """Its data set, and its batch size where there are several."""
    workers: int
    samples_per_s: float
    text: str
    interval: Interval | None = None
    """95 % of what was measured. ``None``: it is predicted."""
    best: bool = False
    """The fastest of its series with so many workers."""


@dataclass(frozen=True)
class OverWorkers:
    """Throughput over workers, a line for each series."""

    points: tuple[SweepPoint, ...]
    demand: float | None


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


ChartData: TypeAlias = Bars | Stacks | StageSpread | Throughputs | OverWorkers | OverTime | Timeline
