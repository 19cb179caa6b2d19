"""One run, measured and explained."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from os import PathLike
from typing import TYPE_CHECKING, Any, Final, Literal

from pipeprof.model.advice import Finding, Recommendation, Worth
from pipeprof.model.conditions import CacheState, DataSource, Environment, LoaderConfig
from pipeprof.model.pauses import PauseKind, PauseStats
from pipeprof.model.recording import BatchLog, Epoch, Overhead
from pipeprof.model.requests import RequestStats
from pipeprof.model.stages import Source, StageStats

PROFILE_SCHEMA: Final = "pipeprof.profile/1"

TableName = Literal["stages", "batches", "workers"]
"""Of a profile, as `Profile.to_arrow` makes it."""
Verdict = Literal["starved", "fed", "inconclusive"]


@dataclass(frozen=True)
class Throughput:
    """Steady state: warm-up and epoch starts left out."""

    samples_per_s: float
    batches_per_s: float
    bytes_per_s: float
    """Logical bytes asked of storage."""
    interval: tuple[float, float]
    """95 % of ``samples_per_s``."""


@dataclass(frozen=True)
class QueueDepth:
    """Batches that lay ready when the next was asked for. The healthy state is a full queue."""

    mean: float
    """Batches."""
    p5: float
    """Batches: one time in twenty there were no more."""
    empty_share: float
    """Of the times a batch was asked for."""
    capacity: int
    """Workers × prefetch factor."""


@dataclass(frozen=True)
class DeviceUse:
    """The accelerator as it saw itself, by events on its stream."""

    wait_s: float
    """Steady state: time in which the stream had nothing to do because no batch was there."""
    busy_s: float
    batches: int
    """Of which events were seen."""
    utilisation: float | None = None
    """0..1, sampled by the driver: a trend, no more."""
    memory_bytes: int | None = None
    """The most seen in use on the device, by all processes."""


@dataclass(frozen=True)
class WorkerStats:
    """One worker's share of the run."""

    index: int
    """-1: the main process (``num_workers=0``)."""
    batches: int
    stages: Mapping[str, StageStats]


@dataclass(frozen=True)
class Ceiling:
    """The most samples/s that one resource allows. The lowest ceiling is the bottleneck."""

    samples_per_s: float
    formula: str
    """With its numbers."""
    source: Source = "estimated"


@dataclass(frozen=True)
class Diagnosis:
    """Is the accelerator starved, and by what."""

    verdict: Verdict
    """*starved* when the interval's lower end reaches the threshold, *fed* when its upper end is
    below, else *inconclusive*."""
    starved_fraction: float
    """Share of the time after warm-up in which the accelerator waited for a batch."""
    starved_interval: tuple[float, float]
    """95 %."""
    threshold: float
    bottleneck: str | None
    """The stage or resource to blame; ``None`` when nothing stalled or nothing can be said."""
    headline: str
    """The verdict in one sentence, with its numbers."""
    accelerator_utilisation: float
    """1 - starved fraction over the same window: after warm-up, until the last step's end."""
    evidence: str = ""
    """Of storage: why the bottleneck is called what it is, or why it cannot be told which part of
    storage it is. Empty when storage is not to blame."""
    disagreements: tuple[str, ...] = ()
    """Where parts of the report name different things: why, in words."""
    more_batches: int | None = None
    """When inconclusive: about how many more batches would settle it."""
    has_step: bool = True
    """Whether the loop trains. Where it does not, the loader is measured alone: nothing is starved,
    and the verdict is *inconclusive*."""


@dataclass(frozen=True)
class AsSteps:
    """The verdict if pauses, and the batches that rested in them, counted as training steps."""

    verdict: Verdict
    starved_fraction: float
    starved_interval: tuple[float, float]
    """95 %."""


@dataclass(frozen=True)
class Pauses:
    """What main did between two batches that was no training step: validation, a checkpoint. None
    of it is in the figures of the steady state."""

    count: int
    """Steps with a pause in them, of the batches that were watched."""
    total_s: float
    longest_s: float
    share: float
    """0..1 of the time after warm-up."""
    rested_batches: int
    """Left out as well: they lay ready, or were in the making, when a pause ended."""
    kinds: tuple[PauseStats, ...]
    """The longest in total first. A step with several pauses counts for the longest of them."""
    as_steps: AsSteps


@dataclass(frozen=True)
class Profile:
    """One run, measured and explained.

    Times are in seconds (``_s``), sizes in bytes, rates per second (``_per_s``) and shares 0 to 1.
    ``None`` means unknown, never zero. ``docs/profile.schema.json`` describes the saved JSON.

    Examples:
        >>> profile = loader.profile()
        >>> profile.diagnosis.verdict, profile.diagnosis.starved_fraction
        ('starved', 0.466)
        >>> profile.save("run.json")
    """

    name: str
    created: str
    config: LoaderConfig
    environment: Environment
    source: DataSource | None
    cache: CacheState
    wall_s: float
    """Of the steady state: first measured batch asked for → last step ended."""
    warmup_batches: int
    measured_batches: int
    first_batch_s: float | None
    throughput: Throughput
    stages: Mapping[str, StageStats]
    missing: Mapping[str, str]
    """Stages that could not be seen → why."""
    workers: tuple[WorkerStats, ...]
    stall_s: float
    """Seconds of the steady state in which the accelerator waited for a batch."""
    blame: Mapping[str, float]
    """Seconds of stall charged to what they were waited for, largest first; sums to ``stall_s``."""
    ceilings: Mapping[str, Ceiling]
    diagnosis: Diagnosis
    recommendations: tuple[Recommendation, ...]
    findings: tuple[Finding, ...]
    overhead: Overhead
    batches: BatchLog
    awaited_in: Mapping[str, float] = field(default_factory=dict)
    """Seconds of stall by where the awaited batch was, which may not be the cause: a batch in its
    hand-over may wait for a worker that computes. Largest first; sums to ``stall_s``."""
    worth: Mapping[str, Worth] = field(default_factory=dict)
    """Of each cause in ``blame``, in its order. Empty where nothing stalled, or too little is
    known."""
    resources: Mapping[str, StageStats] = field(default_factory=dict)
    """What making a batch took of the machine, per sampled batch: ``cpu``, of it ``system``;
    ``run-queue``, ``blocked``, and ``native-threads``, which run beside."""
    epochs: tuple[Epoch, ...] = ()
    queue_depth: QueueDepth | None = None
    device: DeviceUse | None = None
    requests: RequestStats | None = None
    """Made of storage, as far as they were seen."""
    lost_records: int = 0
    notes: tuple[str, ...] = ()
    unix_offset_s: float | None = None
    """Added to a moment of ``batches``: seconds since 1970."""
    stolen_share: float | None = None
    """0..1 of the machine's core time while it ran, that the host of this virtual machine gave to
    others. ``None``: unknown."""
    pauses: Pauses | None = None
    """Left out of the steady state. ``None``: there was none."""
    pause_kinds: tuple[PauseKind, ...] = ()
    """What ``batches.pause_kind`` stands for."""
    schema: Literal["pipeprof.profile/1"] = PROFILE_SCHEMA

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    if TYPE_CHECKING:  # bound by `pipeprof.results`

        def metrics(self, prefix: str = ...) -> dict[str, float]:
            """Return flat figures for an experiment tracker.

            Args:
                prefix: Put before each name.

            Returns:
                Name to finite number, such as ``pipeprof/starved_fraction``: times in seconds,
                rates per second, shares 0 to 1. Unknown figures are left out.
            """

        def to_arrow(self, table: TableName = ...) -> Any:
            """Return a table of Arrow.

            Args:
                table: ``"stages"``, a row each; ``"workers"``, a row for each worker and stage; or
                    ``"batches"``, a row for each of the last 2,000 batches.

            Returns:
                A table with units in its columns' names; null is unknown.

            Raises:
                UsageError: There is no such table.
            """

        def to_pandas(self, table: TableName = ...) -> Any:
            """Return the table of `to_arrow` as a DataFrame.

            Raises:
                PipeprofError: pandas is not installed.
            """

        def save(self, path: str | PathLike[str]) -> None:
            """Write JSON to ``path``, whole or not at all.

            Raises:
                OutputError: The file cannot be written.
            """

        def _repr_html_(self) -> str: ...
