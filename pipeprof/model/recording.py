"""Define the raw measurements of one run, before they are analysed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pipeprof.model.conditions import (
    NOT_INSPECTED,
    CacheState,
    DataSource,
    Environment,
    LoaderConfig,
)
from pipeprof.model.main_process import MainProcess
from pipeprof.model.pauses import PauseKind
from pipeprof.model.pipeline import PipelineStage, PipelineThreads
from pipeprof.model.requests import NO_REQUESTS, LoneRequests, RequestLog


@dataclass(frozen=True)
class Epoch:
    """One pass over the loader."""

    index: int
    began_s: float
    """Moment at which the iterator was requested, on the monotonic clock of the run."""
    batches: int
    """Batches delivered."""
    wall_s: float
    """Time until the pass ended or was abandoned."""
    iterator_s: float | None = None
    """Time to create the iterator, which starts the workers."""
    first_batch_s: float | None = None
    """Time from requesting the iterator to the first batch."""
    closing_s: float | None = None
    """Time from the request after the last batch until the iterator ended, which stops the workers.
    ``None`` when the pass was abandoned before."""


UNWATCHED = -3
"""Value of ``BatchLog.worker`` for a batch that was only timed in the main process, outside the
sampled windows. A saved profile holds none."""


@dataclass(frozen=True)
class BatchLog:
    """Consecutive batches, one column per quantity. Every column is as long as ``index``, or empty
    where nothing is known.

    All moments are on the monotonic clock of the run. The log holds the last measured batches of a
    run; a profile keeps a bounded number of them.
    """

    index: tuple[int, ...] = ()
    """Order of delivery over all epochs, from 0."""
    epoch: tuple[int, ...] = ()
    nth: tuple[int, ...] = ()
    """Position within the epoch, from 0."""
    epoch_batches: tuple[int, ...] = ()
    """Number of batches that the epoch had when the recording ended."""
    worker: tuple[int, ...] = ()
    """Index of the worker; -1: the main process; -2: unknown; -3 (`UNWATCHED`): not sampled."""
    samples: tuple[int, ...] = ()
    asked_s: tuple[float, ...] = ()
    delivered_s: tuple[float, ...] = ()
    done_s: tuple[float, ...] = ()
    """End of the training step: the next batch was requested, or the loop was left."""
    fetch_start_s: tuple[float | None, ...] = ()
    fetch_end_s: tuple[float | None, ...] = ()
    """End of fetch and collate: the batch is ready for the queue."""
    sent_s: tuple[float | None, ...] = ()
    """The batch is serialised and about to enter the pipe."""
    serialised_cpu_s: tuple[float | None, ...] = ()
    """CPU time of the worker's feeder thread to serialise this batch and send the previous one."""
    received_s: tuple[float | None, ...] = ()
    """All bytes have arrived through the pipe."""
    arrived_s: tuple[float | None, ...] = ()
    """The batch is unpickled in the main process."""
    pinned_s: tuple[float | None, ...] = ()
    """The batch is in page-locked memory, ready to be delivered."""
    unpickled_cpu_s: tuple[float | None, ...] = ()
    """CPU time to unpickle, in the main or the pin thread. The remaining time waited for the
    worker."""
    read_s: tuple[float | None, ...] = ()
    decode_s: tuple[float | None, ...] = ()
    transform_s: tuple[float | None, ...] = ()
    collate_s: tuple[float | None, ...] = ()
    turns: tuple[float | None, ...] = ()
    """Number of changes from one stage to another while the batch was fetched."""
    cpu_s: tuple[float | None, ...] = ()
    """CPU time of the worker's thread in fetch and collate."""
    bytes: tuple[float | None, ...] = ()
    """Logical bytes read from storage."""
    requests: tuple[float | None, ...] = ()
    sampler_s: tuple[float | None, ...] = ()
    """Time in the main process to draw the indices of later batches, when this batch was
    requested."""
    h2d_s: tuple[float | None, ...] = ()
    """Time of copies to a device during the step on this batch."""
    h2d_bytes: tuple[float | None, ...] = ()
    device_wait_s: tuple[float | None, ...] = ()
    """Time that the accelerator was idle just before this batch."""
    device_busy_s: tuple[float | None, ...] = ()
    """Time of the accelerator's step on this batch."""
    pause_s: tuple[float | None, ...] = ()
    """The part of the time from delivered to done that was a pause, not a training step."""
    pause_kind: tuple[int | None, ...] = ()
    """Index into the recording's ``pause_kinds``; -1: recognised by its length only."""
    others_s: tuple[float | None, ...] = ()
    """The part of the time from delivered to done in which the loop waited for other loaders."""
    others_received_s: tuple[float | None, ...] = ()
    """The part of that in which it received their batches, which would remain if they were ready;
    at most its mean."""
    rested: tuple[int | None, ...] = ()
    """1: the batch was ready, or being fetched, when a pause ended."""
    runqueue_s: tuple[float | None, ...] = ()
    """Time that the worker's thread was runnable without a core. This column and those that follow
    are sampled for some batches only."""
    process_cpu_s: tuple[float | None, ...] = ()
    """CPU time of all threads of the worker."""
    system_s: tuple[float | None, ...] = ()
    """Kernel CPU time of the worker's thread."""
    logical_bytes: tuple[float | None, ...] = ()
    """Bytes requested by the worker's read calls, cached or not."""
    physical_bytes: tuple[float | None, ...] = ()
    """Bytes that the block device transferred for them."""
    syscalls: tuple[float | None, ...] = ()
    """Number of read calls."""
    private_bytes: tuple[float | None, ...] = ()
    """Memory of the worker that it shares with no other process."""
    descriptors: tuple[float | None, ...] = ()
    """Open file descriptors of the worker."""
    threads: tuple[float | None, ...] = ()
    """Threads of the worker."""
    tensors: tuple[float | None, ...] = ()
    """Tensors of the batch that are sent separately."""
    batch_bytes: tuple[float | None, ...] = ()
    """Size of those tensors."""
    loose_bytes: tuple[float | None, ...] = ()
    """Size of everything else in the batch: text, bytes, numbers, NumPy arrays. ``None`` where the
    size of an object cannot be determined."""
    read_cpu_s: tuple[float | None, ...] = ()
    """CPU time of the worker's thread in this stage; the next three columns likewise. ``None``
    where the data set reports no stages."""
    decode_cpu_s: tuple[float | None, ...] = ()
    transform_cpu_s: tuple[float | None, ...] = ()
    collate_cpu_s: tuple[float | None, ...] = ()
    collate_new_bytes: tuple[float | None, ...] = ()
    """Memory that the kernel had to provide to the worker's thread while it collated."""


@dataclass(frozen=True)
class OtherLoader:
    """Another loader from which the loop takes batches in its steps."""

    name: str
    made_every_s: float | None
    """Mean seconds in which its workers make what a step takes from it."""


@dataclass(frozen=True)
class Overhead:
    """The cost of profiling."""

    share: float | None
    """Share of the run's wall time; ``None`` when it was not measured."""
    per_batch_s: float | None
    method: str


@dataclass(frozen=True)
class Indexing:
    """An in-memory data set without ``__getitems__``, from which torch requests one sample at a
    time."""

    name: str
    """Class name of the data set."""
    one_by_one_s: float | None = None
    """Time to build a batch sample by sample, measured after the run; ``None``: measuring would
    have called user code."""
    at_once_s: float | None = None
    """Time to build the same batch with one index operation per tensor."""


@dataclass(frozen=True)
class SharedReads:
    """A data set that every rank reads as a whole, to keep its own part of the samples."""

    ranks: int
    shards: int | None = None
    """Shards of the data; ``None`` where it has none."""


@dataclass(frozen=True)
class Dispatch:
    """A loader that only rank 0 reads from: it sends each rank its part of the batches."""

    rank: int
    """The rank that was recorded."""
    ranks: int


@dataclass(frozen=True)
class LimitedCache:
    """A cache of downloaded data, from which some is evicted when it is full."""

    option: str
    """The option of the data set that limits the cache, e.g. ``cache_limit``."""
    limit_bytes: int
    data_bytes: int
    """All data of this node."""
    needed_bytes: int
    """The limit from which on nothing is evicted."""
    held_bytes: int
    """Data that the cache held when the last epoch began."""


@dataclass(frozen=True)
class PickledStarts:
    """Starts of workers that were each sent a pickled copy of the data set, of ``collate_fn`` and
    of ``worker_init_fn``."""

    starts: int
    """Number of times that all workers were started."""
    copy_bytes: int
    """Size of one copy."""
    pickle_s: float
    """Seconds of the training process to pickle all copies of all starts."""
    start_s: float
    """Seconds to create the iterators: until the last worker had read its copy, or nearly all."""


@dataclass(frozen=True)
class Recording:
    """The raw measurements of one run, before they are analysed."""

    name: str
    created: str
    """ISO 8601, UTC."""
    config: LoaderConfig
    environment: Environment
    batches: BatchLog
    warmup_batches: int
    """Batches delivered first, which no steady-state figure includes."""
    first_batch_s: float | None
    """Time in the first epoch from requesting the iterator to the first batch."""
    epochs: tuple[Epoch, ...] = ()
    """The last epochs that ended."""
    lost_records: int = 0
    """Batches for which no record arrived from a worker."""
    source: DataSource | None = None
    cache: CacheState = NOT_INSPECTED
    overhead: Overhead = Overhead(None, None, "not measured")
    missing: Mapping[str, str] = field(default_factory=dict)
    """Stages that could not be observed → reason."""
    main: MainProcess = field(default_factory=MainProcess)
    requests: RequestLog = NO_REQUESTS
    lone_requests: LoneRequests | None = None
    """Separate requests that distinguish the storage's latency from its bandwidth."""
    notes: tuple[str, ...] = ()
    unix_offset_s: float | None = None
    """Add this to a moment of the run to get seconds since 1970."""
    pause_kinds: tuple[PauseKind, ...] = ()
    other_loaders: tuple[OtherLoader, ...] = ()
    """Other loaders from which the loop takes batches in its steps, longest awaited first."""
    """Kinds of pauses that are known exactly."""
    indexing: Indexing | None = None
    rebuilt_from: LoaderConfig | None = None
    """Options of the loader in whose place a framework built this one."""
    shared_reads: SharedReads | None = None
    pickled_starts: PickledStarts | None = None
    """``None`` where workers are forked, or there are none."""
    limited_cache: LimitedCache | None = None
    dispatch: Dispatch | None = None
    """``None`` where each rank reads its own batches."""
    taken_ahead: bool = False
    """Whether a thread takes the batches ahead of the training loop."""
    pipeline: tuple[PipelineStage, ...] = ()
    """Stages of a loader that works in threads, from its sources to the batch."""
    pipeline_threads: PipelineThreads | None = None
