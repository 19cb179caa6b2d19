"""Runs against each other: what was changed, what differs, and how sure that is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

from pipeprof.model.profile import Verdict

COMPARISON_SCHEMA: Final = "pipeprof.comparison/1"


@dataclass(frozen=True)
class Change:
    """A setting, or a part of the surroundings, that is not the same in both runs."""

    of: Literal["loader", "data", "machine", "verdict"]
    name: str
    """As in the profile's own JSON."""
    before: str | float | bool | None
    """A number in the unit that the profile has it in. ``None``: unknown, or not set."""
    after: str | float | bool | None
    """As ``before``."""


@dataclass(frozen=True)
class Difference:
    """One figure of both runs."""

    before: float | None
    """In seconds, or a share of the time. ``None``: it was not seen in that run."""
    after: float | None
    change: float | None = None
    """``after - before``."""
    interval: tuple[float, float] | None = None
    """95 % of ``change``; of stages 95 % for all of them together. ``None``: too few batches were
    kept to tell."""
    shown: Literal["more", "less", "none", "unknown"] = "unknown"
    """*none*: no difference that this data can show, as the interval holds 0."""


@dataclass(frozen=True)
class Speed:
    """The samples/s of the later run, held against those of the one before."""

    ratio: float | None
    """As a multiple. ``None``: one of the two measured nothing."""
    interval: tuple[float, float] | None
    """95 % of ``ratio``. ``None``: too few batches were measured to tell."""
    shown: Literal["faster", "slower", "none", "unknown"]
    """*none*: no difference that this data can show, as the interval holds 1, or as it is less than
    3 %."""


@dataclass(frozen=True)
class Compared:
    """One of the runs."""

    file: str
    """That holds its profile, as it was named."""
    name: str
    created: str
    pipeprof: str
    """Version that measured it."""
    accelerator: str
    samples_per_s: float
    samples_interval: tuple[float, float]
    """95 % of ``samples_per_s``, of this run by itself."""
    starved_fraction: float
    """0..1 of the time."""
    verdict: Verdict
    bottleneck: str | None
    measured_batches: int
    kept_batches: int
    """Of the steady state, that the profile still holds."""


@dataclass(frozen=True)
class TwoRuns:
    """A run, and a later one held against it."""

    before: Compared
    after: Compared
    headline: str
    """What became of the throughput in one sentence, with its numbers."""
    speed: Speed
    starved: Difference
    """The starved fraction, 0..1."""
    stall: Difference
    """Seconds of stall, by ``per``."""
    stages: Mapping[str, Difference]
    """Seconds, by ``per``."""
    per: Literal["batch", "sample"]
    """*sample* where the batches of the two are not of one size."""
    changes: tuple[Change, ...]
    unlike: tuple[str, ...]
    """Why this is not a comparison of like with like."""
    between_runs: float
    """By so much, 0..1, two runs of one setting may differ by themselves: every interval is widened
    by it."""


@dataclass(frozen=True)
class RankSkew:
    """The ranks of one training side by side. Each step waits for all of them, so their throughput
    is equal however unlike they are: this is about what each takes to fetch a batch."""

    ranks: int
    grade: Literal["even", "warning", "critical"]
    """By how much longer the slowest takes than the others: below 10 % or no more than chance,
    below 20 %, or more."""
    headline: str
    """In words, with its numbers."""
    rank: int | None = None
    """The slowest; ``None`` where they are even."""
    fetch_s: float | None = None
    """That it takes for a batch."""
    others_s: float | None = None
    """The median of the others."""


@dataclass(frozen=True)
class Comparison:
    """Each run against the first. ``pipeprof compare --json`` prints one."""

    pairs: tuple[TwoRuns, ...]
    """Of sweeps, a pair for each data set."""
    notes: tuple[str, ...] = ()
    ranks: RankSkew | None = None
    """Where all of them are ranks of one training."""
    schema: Literal["pipeprof.comparison/1"] = COMPARISON_SCHEMA

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)
