"""Define the conditions of a run: loader settings, environment, data source and cache state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal


@dataclass(frozen=True)
class LoaderConfig:
    """The settings of a DataLoader during the run."""

    num_workers: int
    prefetch_factor: int | None = None
    """Batches that each worker prefetches; ``None`` without workers."""
    batch_size: int | None = None
    """Samples per batch; ``None`` when the data set builds its own batches and declares no size."""
    pin_memory: bool = False
    persistent_workers: bool = False
    in_order: bool = True
    start_method: str | None = None
    """``fork``, ``forkserver`` or ``spawn``; ``None`` without workers."""
    kind: Literal["map", "iterable", "other"] = "other"
    """Kind of data set: indexed, iterated, or not of a DataLoader."""
    sampler: str | None = None
    """Class that picks the indices, with its module: a sampler, or the user's batch sampler;
    ``None`` where there is none."""
    fixed: tuple[str, ...] = ()
    """Settings above that a loader of another library does not take."""


@dataclass(frozen=True)
class JobPlace:
    """The place of a process in a job of several processes, by its launcher's variables."""

    launcher: str
    """``torchrun``, ``Slurm``, ``Open MPI``, ``MPICH`` or ``Kubernetes``; ``RANK`` for others that
    set torch's variables, such as DeepSpeed's and Ray Train's; ``torch`` for a process group
    without a launcher."""
    rank: int
    """Number of the process in the job."""
    world_size: int | None = None
    """Processes of the job; ``None`` here and below: the launcher did not say."""
    local_rank: int | None = None
    """Number of the process on its node."""
    local_world_size: int | None = None
    """Processes of the job on this node."""
    node: int | None = None
    """Number of the node in the job."""
    job_id: str | None = None
    attempt: int | None = None
    """How many times the job was restarted before."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Field above → environment variable that it came from, or ``torch.distributed``."""


@dataclass(frozen=True)
class Placement:
    """Where a process runs in its machine. Nodes are those of non-uniform memory access (NUMA)."""

    cores: tuple[int, ...]
    """Numbers of the cores that its affinity allows."""
    core_nodes: tuple[int, ...]
    """Nodes that hold some of these cores."""
    memory_nodes: tuple[int, ...]
    """Nodes of which it may use the memory."""
    memory_policy: str | None
    """How its memory is placed, as the kernel calls it: ``default``, ``bind:0``."""
    device_node: int | None
    """Node of its accelerator; ``None`` where it has none, or the machine does not say."""
    nic_nodes: Mapping[str, int]
    """Network card → node, of those that are up and say it."""


@dataclass(frozen=True)
class Environment:
    """The hardware and the software of a run."""

    pipeprof: str
    python: str
    torch: str | None
    platform: str
    cores: int
    """Cores that this process may use: its affinity mask, limited by the cgroup quota; at least
    1."""
    cores_visible: int
    """Cores that the operating system reports."""
    ram_bytes: int | None
    accelerator: str
    """The consumer of the batches. An emulated accelerator says ``emulated`` and how."""
    ranks: int = 1
    """Processes of this training that share ``cores``, each with its own loader."""
    rank: int | None = None
    """Rank of this process within the training. ``None``: its launcher did not set one."""
    readers: Mapping[str, str] | None = None
    """Decoding libraries loaded in this process → versions. ``None``: the profile was saved before
    they were recorded."""
    host: str | None = None
    """Name of the machine. ``None``: the profile was saved before it was recorded."""
    job: JobPlace | None = None
    """``None``: no launcher of several processes was recognised."""
    placement: Placement | None = None
    """``None``: the profile was saved before it was recorded, or the system does not tell it."""


@dataclass(frozen=True)
class Skipped:
    """Unreadable data that was left out, counted each time it occurs."""

    rows: int
    parts: int
    """Parts of objects with an unknown number of rows: damage hid where the next row begins."""
    objects: int
    """Objects that were skipped as a whole."""


@dataclass(frozen=True)
class DataSource:
    """The data that a run read."""

    url: str
    """URL without user names, passwords, tokens or query."""
    format: str
    objects: int
    bytes: int
    """Size on storage."""
    skipped: Skipped | None = None
    """Unreadable data that was left out; ``None``: such data raises an error instead."""
    columns_left_out: tuple[str, ...] = ()
    """Columns that have no tensor form, where none were asked for by name."""
    reader: str | None = None
    """The library that decoded it. ``None``: the format's own decoder."""
    reader_version: str | None = None
    """Its version. ``None`` also where it was saved before that was recorded."""


@dataclass(frozen=True)
class CacheState:
    """Whether the data came from storage or from memory, with evidence."""

    state: Literal["cold", "warm", "mixed", "unknown"]
    evidence: str


NOT_INSPECTED: Final = CacheState("unknown", "the page cache was not inspected")
