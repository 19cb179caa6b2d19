"""Define the data of each chart; a renderer that can draw decides how it looks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from pipeprof.model import BatchLog, StageStats

Interval: TypeAlias = "tuple[float, float]"
Standing: TypeAlias = Literal["worst", "best", "demand", ""]
"""Why a bar stands out. *demand* marks the accelerator's own rate."""


@dataclass(frozen=True)
class Bar:
    """One value, in the unit of its chart."""

    name: str
    value: float
    label: str
    """The text at the end of the bar; may be empty."""
    text: str
    """A sentence about the bar, for its tooltip."""
    standing: Standing = ""
    interval: Interval | None = None


@dataclass(frozen=True)
class Bars:
    """Values to compare, in their order. They may be below 0."""

    unit: Literal["samples/s", "s"]
    title: str
    """The title of the value axis."""
    bars: tuple[Bar, ...]
    demand: float | None = None
    """The accelerator's demand in the same unit."""


@dataclass(frozen=True)
class Stacks:
    """Rows of consecutive parts, such as the stages of each worker."""

    unit: Literal["s", "share"]
    title: str
    """The title of the value axis."""
    rows: Mapping[str, Mapping[str, float]]
    """Row → part → value."""


@dataclass(frozen=True)
class StageSpread:
    """The p50, p95 and p99 of each stage."""

    stages: Mapping[str, StageStats]


@dataclass(frozen=True)
class ThroughputPoint:
    """The samples/s of one setting or run."""

    setting: str
    known_by: str
    """*measured*, *predicted*, or *range* where only an interval is known."""
    samples_per_s: float | None
    """``None`` where only an interval is known."""
    interval: Interval | None


@dataclass(frozen=True)
class Throughputs:
    points: tuple[ThroughputPoint, ...]
    demand: float | None


@dataclass(frozen=True)
class SweepPoint:
    """One setting of a sweep, as measured or predicted."""

    series: str
    """The data set, with the batch size where the sweep has several."""
    workers: int
    samples_per_s: float
    text: str
    interval: Interval | None = None
    """The 95 % interval of a measurement; ``None`` for a prediction."""
    best: bool = False
    """Whether this is the fastest trial of its series with this number of workers."""


@dataclass(frozen=True)
class OverWorkers:
    """Throughput by number of workers, one line per series."""

    points: tuple[SweepPoint, ...]
    demand: float | None


@dataclass(frozen=True)
class RatePoint:
    """The rate of several hosts together."""

    hosts: int
    bytes_per_s: float
    text: str
    """A sentence about the point, for its tooltip."""


@dataclass(frozen=True)
class OverHosts:
    """Bandwidth by number of hosts, with the line that was fitted to it."""

    points: tuple[RatePoint, ...]
    line: tuple[tuple[float, float], ...]
    """Hosts and bytes/s at the ends of the line and at its knee."""


@dataclass(frozen=True)
class Part:
    """The figures of consecutive batches of a run."""

    begin_s: float
    """Seconds since the first recorded batch was requested."""
    end_s: float
    samples_per_s: float | None
    """``None`` where the number of samples per batch is unknown."""
    wait_share: float
    """Share of the time, 0..1, that main waited."""


@dataclass(frozen=True)
class OverTime:
    """One figure over the parts of a run."""

    figure: Literal["samples/s", "waited"]
    parts: tuple[Part, ...]
    shaded: Interval
    """Begin and end, in seconds, of the batches that the `Timeline` shows."""


@dataclass(frozen=True)
class Stretch:
    """A range of consecutive batches of a log."""

    first: int
    """Row of the first batch in the log."""
    last: int
    """Row after the last batch in the log."""
    wait_share: float
    """Share of the time, 0..1, that main waited."""


@dataclass(frozen=True)
class Timeline:
    """The spans of each batch in main and in its worker."""

    log: BatchLog
    stretch: Stretch
    ahead: int
    """Most batches that can be in flight when one is delivered."""


@dataclass(frozen=True)
class ShareMap:
    """A map of shares, such as ranks by time."""

    title: str
    """The title of the horizontal axis."""
    rows: Mapping[str, tuple[float, ...]]
    """Row → the share of each column. 0..1"""


ChartData: TypeAlias = (
    Bars
    | Stacks
    | StageSpread
    | Throughputs
    | OverWorkers
    | OverHosts
    | OverTime
    | Timeline
    | ShareMap
)
