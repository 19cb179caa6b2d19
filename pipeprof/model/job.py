"""Define the joined result of all ranks of a job, whose steps wait for each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from pipeprof.model.profile import Unjudged, Verdict

JOB_SCHEMA: Final = "pipeprof.job/1"

Straggling = Literal["none", "rank", "host", "turns", "all"]
"""Who is last with its batch: nobody, one rank, the ranks of one host, now one and now another, or
all at the same time."""


@dataclass(frozen=True)
class JobRank:
    """One rank of a job."""

    rank: int
    host: str | None
    file: str
    """Path of its profile as the user gave it."""
    starved_fraction: float
    """What the rank's own profile says, 0..1."""
    last_share: float
    """Share of the steps in which all others waited for this rank's batch, 0..1."""
    stall_share: float
    """Share of the job's stall in these steps, 0..1."""
    bottleneck: str | None
    """The cause of most of that stall; ``None`` for no stall."""


@dataclass(frozen=True)
class Cure:
    """What the job would gain if some ranks loaded as fast as the others."""

    of: Literal["rank", "host", "tails", "loading"]
    """One rank, all ranks of a host, the slowest batches of all ranks, or all loading."""
    name: str
    """The rank or the host; empty for the other two."""
    gain: float
    """Relative gain in samples/s: 0.3 is 30 % more."""


@dataclass(frozen=True)
class RankRow:
    """One rank, or consecutive ones, in a `RankMap`."""

    name: str
    """``rank 3``, a host, or the first and the last of several."""
    ranks: int
    late_s: tuple[float, ...]
    """Seconds in which all ranks waited for a batch of these. [parts]"""


@dataclass(frozen=True)
class RankMap:
    """For whose batches a job waited, and when."""

    parts_s: tuple[float, ...]
    """Duration of consecutive parts of the job's steps, in seconds. [parts]"""
    rows: tuple[RankRow, ...]
    """In the order of the ranks."""


@dataclass(frozen=True)
class TrainingJob:
    """The ranks of one job, joined step by step. ``pipeprof gather --json`` prints one of these for
    each loader."""

    name: str
    """Of the loader."""
    created: str
    pipeprof: str
    """Version of pipeprof that measured the first rank."""
    world_size: int
    """Ranks of the job; where no launcher gave the number, those that were found."""
    missing: tuple[int, ...]
    """Ranks without a profile, of which nothing is known."""
    steps: int
    """Steps that all profiles contain; those after warm-up and without pauses."""
    cycle_s: float
    """Mean duration of a step with its wait, in seconds."""
    samples_per_s: float
    """Of all ranks that were found together."""
    verdict: Verdict
    starved_fraction: float
    """Share of the time in which all ranks waited for the last one's batch, 0..1."""
    starved_interval: tuple[float, float]
    """95 % interval of ``starved_fraction``."""
    straggling: Straggling
    headline: str
    blame: Mapping[str, float]
    """Cause → share of the job's stall, the largest first. 0..1"""
    ranks: tuple[JobRank, ...]
    """Those with most of the job's stall first."""
    cures: tuple[Cure, ...]
    """The largest gain first."""
    map: RankMap | None = None
    """``None`` without common steps."""
    idle: tuple[int, ...] = ()
    """Ranks that ended and had loaded nothing."""
    unjudged: Unjudged = ""
    """Why there is no verdict, as in the profile of the first such rank."""
    notes: tuple[str, ...] = ()
    schema: Literal["pipeprof.job/1"] = JOB_SCHEMA

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form, as ``pipeprof gather --json`` prints it."""
        return asdict(self)

    if TYPE_CHECKING:  # bound by `pipeprof.results`

        def metrics(self, prefix: str = ...) -> dict[str, float]:
            """Return flat figures for an experiment tracker.

            Args:
                prefix: Put before each name.

            Returns:
                Name to finite number, such as ``pipeprof/job/starved_fraction``: times in seconds,
                rates per second, shares 0 to 1.
            """
