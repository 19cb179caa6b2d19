"""Define the profile: one run, measured and explained."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from os import PathLike
from typing import TYPE_CHECKING, Any, Final, Literal

from pipeprof.model.advice import Finding, Recommendation, Worth
from pipeprof.model.conditions import CacheState, DataSource, Environment, LoaderConfig
from pipeprof.model.pauses import PauseKind, PauseStats
from pipeprof.model.pipeline import PipelineStage
from pipeprof.model.recording import BatchLog, Epoch, Overhead
from pipeprof.model.requests import RequestStats
from pipeprof.model.stages import Source, StageStats

PROFILE_SCHEMA: Final = "pipeprof.profile/1"

TableName = Literal["stages", "batches", "workers"]
"""A table of a profile, for `Profile.to_arrow`."""
Verdict = Literal["starved", "fed", "inconclusive"]
Unjudged = Literal["", "taken-ahead", "iterator-per-batch"]


@dataclass(frozen=True)
class Throughput:
    """Steady-state throughput, without warm-up and the starts of epochs."""

    samples_per_s: float
    batches_per_s: float
    bytes_per_s: float
    """Logical bytes read from storage."""
    interval: tuple[float, float]
    """95 % interval of ``samples_per_s``."""


@dataclass(frozen=True)
class QueueDepth:
    """Batches that were ready when the next one was requested. A full queue is the healthy
    state."""

    mean: float
    """Mean number of batches."""
    p5: float
    """5th percentile of the number of batches."""
    empty_share: float
    """Share of the requests for a batch that found the queue empty."""
    capacity: int
    """Workers × prefetch factor."""


@dataclass(frozen=True)
class DeviceUse:
    """Use of the accelerator, measured by events on its stream."""

    wait_s: float
    """Steady-state time that the stream was idle because no batch was ready."""
    busy_s: float
    batches: int
    """Batches for which events were recorded."""
    utilisation: float | None = None
    """Utilisation, 0..1, as sampled by the driver; useful only as a trend."""
    memory_bytes: int | None = None
    """Most memory observed in use on the device, by all processes."""


@dataclass(frozen=True)
class WorkerStats:
    """The stages of the batches that one worker fetched."""

    index: int
    """Index of the worker; -1: the main process (``num_workers=0``)."""
    batches: int
    stages: Mapping[str, StageStats]


@dataclass(frozen=True)
class Ceiling:
    """The highest samples/s that one resource allows. The lowest ceiling is the bottleneck."""

    samples_per_s: float
    formula: str
    """The formula with its numbers."""
    source: Source = "estimated"


@dataclass(frozen=True)
class Diagnosis:
    """Whether the accelerator is starved, and by what."""

    verdict: Verdict
    """*starved* when the lower end of the interval reaches the threshold, *fed* when the upper end
    is below it, else *inconclusive*."""
    starved_fraction: float
    """Share of the time after warm-up in which the accelerator waited for a batch."""
    starved_interval: tuple[float, float]
    """95 % interval of ``starved_fraction``."""
    threshold: float
    bottleneck: str | None
    """The stage or resource to blame; ``None`` when nothing stalled or the cause is unknown."""
    headline: str
    """One sentence with the verdict and its numbers."""
    accelerator_utilisation: float
    """1 - starved fraction, over the same time: from the end of warm-up to the end of the last
    step."""
    evidence: str = ""
    """Why a part of storage is the bottleneck, or why the part is unknown. Empty when storage is
    not to blame."""
    worth_note: str = ""
    """Why another cause is worth more than the first one. Empty where none is."""
    disagreements: tuple[str, ...] = ()
    """Why other parts of the report name different causes, one sentence each."""
    more_batches: int | None = None
    """When inconclusive: approximate number of further batches that would decide the verdict."""
    has_step: bool = True
    """Whether the loop trains. Where it does not, only the loader is measured and the verdict is
    *inconclusive*."""
    unjudged: Unjudged = ""
    """Why the waits of the loop are not those of training; empty where they are. A thread takes the
    batches ahead of it, or it makes a new iterator for each batch. The verdict is then
    *inconclusive*."""


@dataclass(frozen=True)
class AsSteps:
    """The verdict if pauses, and the batches that rested in them, counted as training steps."""

    verdict: Verdict
    starved_fraction: float
    starved_interval: tuple[float, float]
    """95 % interval of ``starved_fraction``."""


@dataclass(frozen=True)
class Pauses:
    """Time that the main process spent between two batches on other work than a training step, such
    as validation or a checkpoint. Steady-state figures exclude it."""

    count: int
    """Steps that contain a pause, among the sampled batches."""
    total_s: float
    longest_s: float
    share: float
    """Share of the time after warm-up, 0..1."""
    rested_batches: int
    """Batches that were ready, or being fetched, when a pause ended. Steady-state figures exclude
    them too."""
    kinds: tuple[PauseStats, ...]
    """Kinds of pauses, the largest total first. A step with several pauses counts for the
    longest."""
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
    """Steady-state wall time: from the request for the first measured batch to the end of the last
    step."""
    warmup_batches: int
    measured_batches: int
    first_batch_s: float | None
    throughput: Throughput
    stages: Mapping[str, StageStats]
    missing: Mapping[str, str]
    """Stages that could not be observed → reason."""
    workers: tuple[WorkerStats, ...]
    stall_s: float
    """Seconds of the steady state in which the accelerator waited for a batch."""
    blame: Mapping[str, float]
    """Cause → seconds of stall that it is responsible for, largest first; sums to ``stall_s``."""
    ceilings: Mapping[str, Ceiling]
    diagnosis: Diagnosis
    recommendations: tuple[Recommendation, ...]
    findings: tuple[Finding, ...]
    overhead: Overhead
    batches: BatchLog
    awaited_in: Mapping[str, float] = field(default_factory=dict)
    """Stage of the awaited batch → seconds of stall, largest first; sums to ``stall_s``. It may
    differ from the cause: a batch in transfer may wait for a worker that computes."""
    worth: Mapping[str, Worth] = field(default_factory=dict)
    """Cause → what reducing it is worth, in the order of ``blame``. Empty where nothing stalled or
    too little is known."""
    resources: Mapping[str, StageStats] = field(default_factory=dict)
    """Resources used to fetch a batch, per sampled batch: ``cpu`` with its part ``system``,
    ``run-queue``, ``blocked``, and ``native-threads``, which run concurrently."""
    epochs: tuple[Epoch, ...] = ()
    queue_depth: QueueDepth | None = None
    device: DeviceUse | None = None
    requests: RequestStats | None = None
    """Observed storage requests."""
    lost_records: int = 0
    notes: tuple[str, ...] = ()
    unix_offset_s: float | None = None
    """Add this to a moment of ``batches`` to get seconds since 1970."""
    core_wait_share: float | None = None
    """Share, 0..1, of the run in which the thread that iterates could run, but had no core.
    ``None``: unknown."""
    stolen_share: float | None = None
    """Share, 0..1, of the virtual machine's core time during the run that its host gave to others.
    ``None``: unknown."""
    pauses: Pauses | None = None
    """Pauses, which the steady state excludes. ``None``: there were none."""
    pause_kinds: tuple[PauseKind, ...] = ()
    """The kinds that the values of ``batches.pause_kind`` index."""
    pipeline: tuple[PipelineStage, ...] = ()
    """Stages of a loader that works in threads, from its sources to the batch. Empty for torch's
    DataLoaders."""
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
