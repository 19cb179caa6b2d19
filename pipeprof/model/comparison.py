"""Define the comparison of runs: what was changed, what differs, and how certain that is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

from pipeprof.model.job import Straggling
from pipeprof.model.profile import Verdict

COMPARISON_SCHEMA: Final = "pipeprof.comparison/1"


@dataclass(frozen=True)
class Change:
    """A setting, or a property of the environment, that differs between two runs."""

    of: Literal["loader", "data", "machine", "verdict"]
    name: str
    """Name of the setting as in the profile's JSON."""
    before: str | float | bool | None
    """Value in the first run, in the unit that the profile uses. ``None``: unknown or not set."""
    after: str | float | bool | None
    """Value in the later run; otherwise as ``before``."""


@dataclass(frozen=True)
class Difference:
    """One quantity as measured in both runs."""

    before: float | None
    """Seconds, or a share of the time, in the first run. ``None``: not observed in that run."""
    after: float | None
    """The same quantity in the later run."""
    change: float | None = None
    """``after - before``."""
    interval: tuple[float, float] | None = None
    """95 % interval of ``change``; for stages, 95 % for all of them together. ``None``: too few
    batches were kept."""
    shown: Literal["more", "less", "none", "unknown"] = "unknown"
    """*none*: the data show no difference, because the interval contains 0."""


@dataclass(frozen=True)
class Speed:
    """The samples/s of the later run, compared with those of the first."""

    ratio: float | None
    """Later rate as a multiple of the first. ``None``: one of the two runs measured nothing."""
    interval: tuple[float, float] | None
    """95 % interval of ``ratio``. ``None``: too few batches were measured."""
    shown: Literal["faster", "slower", "none", "unknown"]
    """*none*: the data show no difference, because the interval contains 1 or the difference is
    below 3 %."""


@dataclass(frozen=True)
class Compared:
    """One of the compared runs."""

    file: str
    """Path of the profile as the user gave it."""
    name: str
    created: str
    pipeprof: str
    """Version of pipeprof that measured this run."""
    accelerator: str
    samples_per_s: float
    samples_interval: tuple[float, float]
    """95 % interval of ``samples_per_s`` within this run."""
    starved_fraction: float | None
    """Share of the time, 0..1; ``None`` where the waits are not those of the training."""
    verdict: Verdict
    bottleneck: str | None
    measured_batches: int
    kept_batches: int
    """Steady-state batches that the profile still holds."""


@dataclass(frozen=True)
class TwoRuns:
    """A run, and a later one compared with it."""

    before: Compared
    after: Compared
    headline: str
    """One sentence that says how the throughput changed, with its numbers."""
    speed: Speed
    starved: Difference
    """The starved fraction, 0..1."""
    stall: Difference
    """Seconds of stall per ``per``."""
    stages: Mapping[str, Difference]
    """Stage → seconds per ``per``."""
    per: Literal["batch", "sample"]
    """*sample* where the batch sizes of the two runs differ."""
    changes: tuple[Change, ...]
    unlike: tuple[str, ...]
    """Reasons why the two runs are not directly comparable."""
    between_runs: float
    """Relative difference, 0..1, that repeated runs of one setting may show. Every interval is
    widened by it."""


@dataclass(frozen=True)
class JobFigures:
    """What a comparison shows of all ranks of a job; see `TrainingJob`."""

    folder: str
    name: str
    """Of the loader."""
    ranks: int
    samples_per_s: float
    """Of all ranks together."""
    starved_fraction: float
    starved_interval: tuple[float, float]
    straggling: Straggling
    slowed_by: str
    """``rank 3`` or a host, where one of them holds the job up; else empty."""
    bottleneck: str | None
    """The cause of most of the job's stall; ``None`` for no stall."""


@dataclass(frozen=True)
class TwoJobs:
    """A loader of two jobs."""

    before: JobFigures
    after: JobFigures


@dataclass(frozen=True)
class Comparison:
    """Each run compared with the first. ``pipeprof compare --json`` prints one of these."""

    pairs: tuple[TwoRuns, ...]
    """One pair per later run; for sweeps, one per data set."""
    jobs: tuple[TwoJobs, ...] = ()
    """One per pair, where these are the first ranks of two jobs."""
    notes: tuple[str, ...] = ()
    schema: Literal["pipeprof.comparison/1"] = COMPARISON_SCHEMA

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)
