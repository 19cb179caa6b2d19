"""Every frozen type that is saved or crosses a room. Standard library only.

Units, in Python and in the JSON alike: times and durations in seconds (``_s``), sizes in bytes,
rates per second (``_per_s``), shares 0..1. ``None`` means unknown, never zero.
The words are those of ``docs/how-it-measures.md``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import Enum
from os import PathLike
from typing import Any, Final, Literal

PROFILE_SCHEMA: Final = "pipeprof.profile/1"
SWEEP_SCHEMA: Final = "pipeprof.sweep/1"


class Stage(str, Enum):
    """A step of a batch's journey, in the order in which a batch passes them."""

    READ = "read"
    """In a worker: bytes asked of storage → bytes in RAM."""
    DECODE = "decode"
    """In a worker: encoded bytes → arrays."""
    TRANSFORM = "transform"
    """In a worker: arrays → samples; the user's own code."""
    FETCH = "fetch"
    """In a worker: read + decode + transform, and whatever else a black-box data set does."""
    COLLATE = "collate"
    """In a worker: samples → batch."""
    TRANSFER = "transfer"
    """Worker → main: batch handed to the queue → unpickled in main: the three that follow."""
    SERIALISE = "serialise"
    """In a worker, its feeder thread: batch handed to the queue → pickled, its tensors in shared
    memory."""
    PIPE = "pipe"
    """Worker → main: pickled → all bytes received in main."""
    UNPICKLE = "unpickle"
    """In main: bytes received → objects again, shared memory attached."""
    REORDER = "reorder"
    """In main: batch arrived → its turn to be delivered."""
    PIN = "pin"
    """In main: pageable → page-locked memory."""
    READY = "ready"
    """In main: batch deliverable → asked for. Slack: the healthy state."""
    WAIT = "wait"
    """In main: batch asked for → delivered. The stall, seen from the host."""
    H2D = "h2d"
    """Main → accelerator: host → device copy."""
    STEP = "step"
    """In main: batch delivered → next batch asked for."""

    # Enum's own is written in Python, and stages are looked up in hot paths
    __hash__ = str.__hash__

    def __str__(self) -> str:
        return self.value


Source = Literal["measured", "estimated", "unknown"]
"""Where a number comes from: clocked directly, derived from other numbers, or not to be had."""
Verdict = Literal["starved", "fed", "inconclusive"]
CacheWanted = Literal["cold", "warm", "as-is"]
"""What a trial begins with: files evicted from memory, read into it, or left as they are."""


@dataclass(frozen=True)
class Span:
    """One stretch of time that one stage took in one process."""

    stage: Stage
    start_s: float
    """Monotonic clock, comparable between processes of one machine."""
    end_s: float
    bytes: int = 0
    """Logical bytes: asked for by the reader."""
    requests: int = 0
    """Separate requests made of storage."""


@dataclass(frozen=True)
class StageStats:
    """How long one stage took per batch, over the measured batches."""

    count: int
    """Batches in which the stage was seen."""
    mean_s: float
    p50_s: float
    p95_s: float
    p99_s: float
    total_s: float
    bytes: int = 0
    """Logical bytes moved by the stage."""
    requests: int = 0
    """Separate requests made of storage."""
    source: Source = "measured"


@dataclass(frozen=True)
class LoaderConfig:
    """The settings of a DataLoader as it ran."""

    num_workers: int
    prefetch_factor: int | None = None
    """Batches asked of each worker ahead of need; ``None`` without workers."""
    batch_size: int | None = None
    """Samples per batch; ``None`` when the data set makes its own batches and none is declared."""
    pin_memory: bool = False
    persistent_workers: bool = False
    in_order: bool = True
    start_method: str | None = None
    """``fork``, ``forkserver`` or ``spawn``; ``None`` without workers."""
    kind: Literal["map", "iterable", "other"] = "other"
    """Of the data set: indexed, iterated, or not a DataLoader's at all."""


@dataclass(frozen=True)
class Environment:
    """The machine and the software of a run."""

    pipeprof: str
    python: str
    torch: str | None
    platform: str
    cores: int
    """Cores this process may use: its affinity, less what a cgroup quota takes away, at least 1."""
    cores_visible: int
    """Cores the machine shows."""
    ram_bytes: int | None
    accelerator: str
    """What consumed the batches. An emulated accelerator says ``emulated`` and how."""


@dataclass(frozen=True)
class DataSource:
    """What was read."""

    url: str
    """Without user names, passwords, tokens or query."""
    format: str
    objects: int
    bytes: int
    """On storage."""


@dataclass(frozen=True)
class CacheState:
    """Whether the data came from storage or from memory: evidenced, never assumed."""

    state: Literal["cold", "warm", "mixed", "unknown"]
    evidence: str


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
class Epoch:
    """One pass over the loader."""

    index: int
    began_s: float
    """The iterator was asked for; monotonic clock of the run."""
    batches: int
    """Delivered."""
    wall_s: float
    """Until the pass ended or was left."""
    iterator_s: float | None = None
    """To make the iterator: workers are started in it."""
    first_batch_s: float | None = None
    """From asking for the iterator to the first batch."""
    closing_s: float | None = None
    """From asking once more after the last batch to learning that there is none: workers are
    stopped in it. ``None`` when the pass was left before."""


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
class BatchLog:
    """Consecutive batches, a column per figure. Every column is as long as ``index``, or empty
    where nothing is known.

    All moments are on the monotonic clock of the run. The last measured batches of a run; a
    profile keeps a bounded number of them.
    """

    index: tuple[int, ...] = ()
    """Order of delivery, from 0, over all epochs."""
    epoch: tuple[int, ...] = ()
    nth: tuple[int, ...] = ()
    """Within its epoch, from 0."""
    epoch_batches: tuple[int, ...] = ()
    """How many its epoch had by the end of what was seen."""
    worker: tuple[int, ...] = ()
    """-1: made in the main process; -2: not known."""
    samples: tuple[int, ...] = ()
    asked_s: tuple[float, ...] = ()
    delivered_s: tuple[float, ...] = ()
    done_s: tuple[float, ...] = ()
    """The training step ended: the next batch was asked for, or the loop was left."""
    fetch_start_s: tuple[float | None, ...] = ()
    fetch_end_s: tuple[float | None, ...] = ()
    """Collate included: ready to be handed to the queue."""
    sent_s: tuple[float | None, ...] = ()
    """Serialised, about to go into the pipe."""
    received_s: tuple[float | None, ...] = ()
    """All its bytes had come through the pipe."""
    arrived_s: tuple[float | None, ...] = ()
    """Unpickled in main."""
    pinned_s: tuple[float | None, ...] = ()
    """In page-locked memory, ready to be taken."""
    read_s: tuple[float | None, ...] = ()
    decode_s: tuple[float | None, ...] = ()
    transform_s: tuple[float | None, ...] = ()
    collate_s: tuple[float | None, ...] = ()
    turns: tuple[float | None, ...] = ()
    """How often one stage followed another while the batch was made."""
    cpu_s: tuple[float | None, ...] = ()
    """CPU time of the worker's thread in fetch and collate."""
    bytes: tuple[float | None, ...] = ()
    """Logical, of storage."""
    requests: tuple[float | None, ...] = ()
    sampler_s: tuple[float | None, ...] = ()
    """Main, asked for this batch: time to pick the indices of batches to come."""
    h2d_s: tuple[float | None, ...] = ()
    """Copies to a device in the step on this batch."""
    h2d_bytes: tuple[float | None, ...] = ()
    device_wait_s: tuple[float | None, ...] = ()
    """The accelerator had nothing to do, just before this batch."""
    device_busy_s: tuple[float | None, ...] = ()
    """The accelerator's step on it."""
    runqueue_s: tuple[float | None, ...] = ()
    """This and what follows is sampled, a batch now and then. The worker's thread wanted a core,
    and had none."""
    process_cpu_s: tuple[float | None, ...] = ()
    """CPU time of all the worker's threads."""
    system_s: tuple[float | None, ...] = ()
    """CPU time of the worker's thread in the kernel."""
    logical_bytes: tuple[float | None, ...] = ()
    """Asked of the kernel by the worker's read calls, cached or not."""
    physical_bytes: tuple[float | None, ...] = ()
    """Moved by the device for them."""
    syscalls: tuple[float | None, ...] = ()
    """Read calls."""
    private_bytes: tuple[float | None, ...] = ()
    """Memory of the worker that it shares with nobody."""
    descriptors: tuple[float | None, ...] = ()
    """Open in the worker."""
    threads: tuple[float | None, ...] = ()
    """Of the worker."""
    tensors: tuple[float | None, ...] = ()
    """In the batch, that travel one by one."""
    batch_bytes: tuple[float | None, ...] = ()
    """Of those tensors."""


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
    more_batches: int | None = None
    """When inconclusive: about how many more batches would settle it."""


@dataclass(frozen=True)
class Finding:
    """A named pathology, seen in this run."""

    code: str
    """Stable, e.g. ``few-splits``."""
    title: str
    evidence: str
    """Numbers of this run."""
    fix: str
    """In terms of what the user has set now."""


@dataclass(frozen=True)
class Recommendation:
    """One change of settings, with what it brings and how that is known."""

    setting: str
    """What to change, e.g. ``num_workers``; several are joined by `` + ``."""
    current: str
    proposed: str
    why: str
    predicted_samples_per_s: float | None = None
    interval: tuple[float, float] | None = None
    """95 % of the predicted, else of the verified figure."""
    verified_samples_per_s: float | None = None
    """Measured by running the proposal."""
    code: str | None = None
    """To paste."""


@dataclass(frozen=True)
class Overhead:
    """What the measuring itself cost."""

    share: float | None
    """Of the run's wall time; ``None`` when it was not measured."""
    per_batch_s: float | None
    method: str


@dataclass(frozen=True)
class MainProcess:
    """What could be seen of the process that trains, at the end of the run."""

    cpu_s: float | None = None
    """CPU time of all its threads since the loader was first iterated."""
    wall_s: float | None = None
    """Since then."""
    descriptors: int | None = None
    """The most seen open."""
    descriptor_limit: int | None = None
    shared_memory_bytes: int | None = None
    """Size of /dev/shm."""
    available_bytes: int | None = None
    """RAM that could be had, within the cgroup's limit."""
    threads_at_fork: int | None = None
    """Native and Python threads that lived when workers were forked."""
    python_threads_at_fork: tuple[str, ...] = ()
    """Names of the Python threads beside the one that forked."""
    sharing: str | None = None
    """How tensors travel: ``file_descriptor`` or ``file_system``."""
    pageable_copies: int = 0
    """Copies to the device from memory that was not page-locked."""
    blocking_copies: int = 0
    """Copies that the host waited for."""
    device_utilisation: float | None = None
    """0..1."""
    device_memory_bytes: int | None = None


@dataclass(frozen=True)
class Recording:
    """What one run measured, before it is analysed."""

    name: str
    created: str
    """ISO 8601, UTC."""
    config: LoaderConfig
    environment: Environment
    batches: BatchLog
    warmup_batches: int
    """Delivered first and left out of every figure of the steady state."""
    first_batch_s: float | None
    """In the first epoch: from asking for the iterator to the first batch."""
    epochs: tuple[Epoch, ...] = ()
    """The last that ended."""
    lost_records: int = 0
    """Batches of which a worker's record did not arrive."""
    source: DataSource | None = None
    cache: CacheState = CacheState("unknown", "the page cache was not inspected")
    overhead: Overhead = Overhead(None, None, "not measured")
    missing: Mapping[str, str] = field(default_factory=dict)
    """Stages that could not be seen → why."""
    main: MainProcess = MainProcess()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Profile:
    """One run, measured and explained. Saved as JSON; ``docs/profile.schema.json`` describes it."""

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
    """Seconds of stall charged to what the awaited batch was doing; sums to ``stall_s``."""
    ceilings: Mapping[str, Ceiling]
    diagnosis: Diagnosis
    recommendations: tuple[Recommendation, ...]
    findings: tuple[Finding, ...]
    overhead: Overhead
    batches: BatchLog
    resources: Mapping[str, StageStats] = field(default_factory=dict)
    """What making a batch took of the machine, per sampled batch: ``cpu``, of it ``system``;
    ``run-queue``, ``blocked``, and ``native-threads``, which run beside."""
    epochs: tuple[Epoch, ...] = ()
    queue_depth: QueueDepth | None = None
    device: DeviceUse | None = None
    lost_records: int = 0
    notes: tuple[str, ...] = ()
    schema: Literal["pipeprof.profile/1"] = PROFILE_SCHEMA

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def save(self, path: str | PathLike[str]) -> None:
        """Write as JSON, atomically. Raises `pipeprof.errors.OutputError`."""
        from pipeprof.store import save

        save(self, path)

    def __str__(self) -> str:
        from pipeprof.report.terminal import render_text

        return render_text(self)


@dataclass(frozen=True)
class SweepSpec:
    """What a sweep was asked to try. Two sweeps with the same spec are the same sweep."""

    urls: tuple[str, ...]
    """Without secrets."""
    workers: tuple[int, ...]
    prefetch: tuple[int, ...]
    batch_sizes: tuple[int, ...]
    step_s: float | None
    """The emulated accelerator's step on a batch of the first size; other sizes in proportion.
    ``None`` when ``step`` is the user's own."""
    accelerator: str | None = None
    """Whose step is emulated, e.g. ``resnet50/h100`` of MLPerf Storage."""
    step: str | None = None
    """The user's training step, ``module:function``."""
    transform: str | None = None
    """The user's transform of a batch, ``module:function``."""
    columns: tuple[str, ...] | None = None
    """Read; ``None``: all."""
    trial_s: float = 3.0
    """Least measured time of a trial."""
    warmup_s: float = 1.0
    """Least time of a trial that is left out first."""
    threshold: float = 0.05
    """The starved share that counts as starved."""
    cache: CacheWanted = "cold"
    """Asked for; what each trial had is in `Trial.cache`."""


@dataclass(frozen=True)
class Trial:
    """One setting of a sweep, run."""

    url: str
    format: str
    config: LoaderConfig
    profile: str
    """File name of its profile, relative to the sweep's own file."""
    samples_per_s: float
    interval: tuple[float, float]
    """95 % of ``samples_per_s``."""
    spread: float
    """(max - min) / median of ``samples_per_s`` over five equal windows of the trial."""
    starved_fraction: float
    starved_interval: tuple[float, float]
    verdict: Verdict
    bottleneck: str | None
    bytes_per_sample: float
    """Logical bytes asked of storage."""
    demand_samples_per_s: float | None = None
    """What the accelerator would take if it never waited."""
    cache: CacheState = CacheState("unknown", "the page cache was not inspected")


@dataclass(frozen=True)
class SweepAdvice:
    """What a sweep says of one data set."""

    url: str
    format: str
    headline: str
    best_trial: int
    """Index into ``trials`` of the cheapest setting that feeds, else of the fastest."""
    recommendation: Recommendation | None
    """From the first setting tried to the best."""


@dataclass(frozen=True)
class SweepResult:
    """Trials over one or more data sets; saved anew after each trial."""

    created: str
    spec: SweepSpec
    environment: Environment
    trials: tuple[Trial, ...] = ()
    planned: int = 0
    """Trials in the grid; more than ``len(trials)`` while unfinished."""
    advice: tuple[SweepAdvice, ...] = ()
    notes: tuple[str, ...] = ()
    schema: Literal["pipeprof.sweep/1"] = SWEEP_SCHEMA

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def save(self, path: str | PathLike[str]) -> None:
        """Write as JSON, atomically. Raises `pipeprof.errors.OutputError`."""
        from pipeprof.store import save

        save(self, path)
