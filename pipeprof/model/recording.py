"""What one run measured, before it is analysed."""

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
from pipeprof.model.pauses import PauseKind
from pipeprof.model.requests import NO_REQUESTS, LoneRequests, RequestLog


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


UNWATCHED = -3
"""In the place of a worker, of a batch that main only clocked: no record of it was asked for. A
profile holds none."""


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
    """-1: made in the main process; -2: not known; `UNWATCHED`."""
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
    serialised_cpu_s: tuple[float | None, ...] = ()
    """CPU time of the worker's feeder thread: to serialise it, and to send the one before."""
    received_s: tuple[float | None, ...] = ()
    """All its bytes had come through the pipe."""
    arrived_s: tuple[float | None, ...] = ()
    """Unpickled in main."""
    pinned_s: tuple[float | None, ...] = ()
    """In page-locked memory, ready to be taken."""
    unpickled_cpu_s: tuple[float | None, ...] = ()
    """CPU time of main, or its pin thread, in unpickling: the rest was waiting for the worker."""
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
    pause_s: tuple[float | None, ...] = ()
    """Of the time between delivered and done: no training step, but a pause."""
    pause_kind: tuple[int | None, ...] = ()
    """Place in the recording's ``pause_kinds``; -1: only its length tells."""
    rested: tuple[int | None, ...] = ()
    """1: it lay ready, or was in the making, when a pause ended."""
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
    loose_bytes: tuple[float | None, ...] = ()
    """Of what else is in the batch: text, bytes, numbers, NumPy arrays; ``None`` where it holds
    anything that cannot be weighed."""
    read_cpu_s: tuple[float | None, ...] = ()
    """CPU time of the worker's thread in that stage; so are the next three. ``None`` where the data
    set names no stages."""
    decode_cpu_s: tuple[float | None, ...] = ()
    transform_cpu_s: tuple[float | None, ...] = ()
    collate_cpu_s: tuple[float | None, ...] = ()


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
    stolen_share: float | None = None
    """0..1 of the core time of the whole virtual machine since the loader was first iterated, that
    its host gave to others. ``None``: unknown."""


@dataclass(frozen=True)
class Indexing:
    """A data set in memory without ``__getitems__``: torch asks for one sample at a time."""

    name: str
    """Its class."""
    one_by_one_s: float | None = None
    """To make a batch so, timed after the run; ``None``: that would have called a user's code."""
    at_once_s: float | None = None
    """The same batch by one index of each tensor."""


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
    cache: CacheState = NOT_INSPECTED
    overhead: Overhead = Overhead(None, None, "not measured")
    missing: Mapping[str, str] = field(default_factory=dict)
    """Stages that could not be seen → why."""
    main: MainProcess = MainProcess()
    requests: RequestLog = NO_REQUESTS
    lone_requests: LoneRequests | None = None
    """Made to tell the storage's latency from its bandwidth."""
    notes: tuple[str, ...] = ()
    unix_offset_s: float | None = None
    """Added to a moment of the run: seconds since 1970."""
    pause_kinds: tuple[PauseKind, ...] = ()
    """Those that are known exactly."""
    indexing: Indexing | None = None
