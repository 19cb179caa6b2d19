"""What was run, and on what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal


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
    ranks: int = 1
    """Processes of this training that share ``cores``, each with a loader of its own."""
    rank: int | None = None
    """Of this process among all of this training. ``None``: its launcher did not say."""
    readers: Mapping[str, str] | None = None
    """The libraries that decode data, of those loaded in this process, and their versions.
    ``None``: saved before they were recorded."""


@dataclass(frozen=True)
class Skipped:
    """What was left out because it could not be read, counted each time that it came up."""

    rows: int
    parts: int
    """Of objects, with rows of unknown number: what lies behind a fault that hides where the next
    row begins."""
    objects: int
    """Left out as a whole, from the beginning."""


@dataclass(frozen=True)
class DataSource:
    """What was read."""

    url: str
    """Without user names, passwords, tokens or query."""
    format: str
    objects: int
    bytes: int
    """On storage."""
    skipped: Skipped | None = None
    """``None``: whatever cannot be read is an error."""


@dataclass(frozen=True)
class CacheState:
    """Whether the data came from storage or from memory: evidenced, never assumed."""

    state: Literal["cold", "warm", "mixed", "unknown"]
    evidence: str


NOT_INSPECTED: Final = CacheState("unknown", "the page cache was not inspected")
