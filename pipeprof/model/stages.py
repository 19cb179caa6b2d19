"""The steps of a batch's journey, and what is known of each."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Literal


class Stage(str, Enum):
    """The stages of a batch's path from storage to the training step, in the order of the path.

    A member equals its name as text, so ``profile.stages["read"]`` and
    ``profile.stages[Stage.READ]`` are the same.

    Examples:
        >>> profile.stages[pipeprof.Stage.FETCH].mean_s
        0.0242
    """

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
    """In main: batch delivered → next batch asked for, less the pause."""
    PAUSE = "pause"
    """In main: between two batches, but no training step: validation, a checkpoint."""

    # Enum's own is written in Python, and stages are looked up in hot paths
    __hash__ = str.__hash__

    def __str__(self) -> str:
        return self.value


Source = Literal["measured", "estimated", "unknown"]
"""Where a number comes from: clocked directly, derived from other numbers, or not to be had."""


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
