"""Define the stages of a batch's path, and the statistics of a stage."""

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
    """In a worker: bytes requested from storage → bytes in RAM."""
    DECODE = "decode"
    """In a worker: encoded bytes → arrays."""
    TRANSFORM = "transform"
    """In a worker: arrays → samples, by the user's own code."""
    FETCH = "fetch"
    """In a worker: read + decode + transform, and everything else that a black-box data set
    does."""
    COLLATE = "collate"
    """In a worker: samples → batch."""
    TRANSFER = "transfer"
    """Worker → main: batch put into the queue → unpickled in main. It is the sum of the next
    three."""
    SERIALISE = "serialise"
    """In the feeder thread of a worker: batch put into the queue → pickled, with its tensors in
    shared memory."""
    PIPE = "pipe"
    """Worker → main: pickled → all bytes received in main."""
    UNPICKLE = "unpickle"
    """In main: bytes received → objects, with shared memory attached."""
    REORDER = "reorder"
    """In main: batch arrived → next in order of delivery."""
    PIN = "pin"
    """In main: pageable → page-locked memory."""
    READY = "ready"
    """In main: batch deliverable → requested. It is slack, and long in a healthy run."""
    WAIT = "wait"
    """In main: batch requested → delivered. It is the stall as the host measures it."""
    H2D = "h2d"
    """Main → accelerator: host → device copy."""
    STEP = "step"
    """In main: batch delivered → next batch requested, without pauses."""
    PAUSE = "pause"
    """In main: time between two batches that is no training step, such as validation or a
    checkpoint."""

    # Enum's own is written in Python, and stages are looked up in hot paths
    __hash__ = str.__hash__

    def __str__(self) -> str:
        return self.value


Source = Literal["measured", "estimated", "unknown"]
"""Where a number comes from: measured directly, derived from other numbers, or not available."""


@dataclass(frozen=True)
class Span:
    """One interval that one stage took in one process."""

    stage: Stage
    start_s: float
    """Moment on the monotonic clock, which is common to all processes of a machine."""
    end_s: float
    bytes: int = 0
    """Logical bytes that the reader requested."""
    requests: int = 0
    """Separate storage requests."""


@dataclass(frozen=True)
class StageStats:
    """How long one stage took per batch, over the measured batches."""

    count: int
    """Batches for which the stage was observed."""
    mean_s: float
    p50_s: float
    p95_s: float
    p99_s: float
    total_s: float
    bytes: int = 0
    """Logical bytes that the stage moved."""
    requests: int = 0
    """Separate storage requests."""
    source: Source = "measured"
