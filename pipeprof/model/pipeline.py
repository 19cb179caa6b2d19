"""Define the stages of a loader that works in threads, by the names of its own library."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

MeasuredBy = Literal["pipeprof", "library"]
"""Who timed a stage: pipeprof's timers, or statistics that the library keeps itself."""

TRAINING_LOOP: Final = "training loop"
"""Value of ``PipelineStage.pool`` for work of the thread that asks for batches."""


@dataclass(frozen=True)
class PipelineStage:
    """One stage of a loader that works in threads, such as a ``ParallelMapper``."""

    name: str
    """What it runs, e.g. the name of the user's function. Unique within the loader."""
    library: str
    """``torchdata.nodes``, ``grain``, ``spdl`` or ``ray.data``."""
    kind: str
    """The library's own word for such a stage, e.g. ``ParallelMapper``."""
    items: int | None
    """Items that it finished while the loader was iterated. ``None``: the library does not
    say."""
    busy_s: float | None
    """Time in the stage, summed over its threads. A thread that waits for storage or for the
    interpreter is busy; one that waits for its input is not."""
    elapsed_s: float
    """Time for which the loader was iterated while the stage was measured, without pauses."""
    concurrency: int | None = None
    """Items that it may work on at once. ``None``: unknown."""
    cpu_s: float | None = None
    """The part of ``busy_s`` in which its threads computed. ``None``: unknown."""
    waited_s: float | None = None
    """Time that the training loop waited for this stage, where the library itself says so."""
    pool: str = ""
    """The threads that it shares with other stages; empty: it has threads of its own."""
    pool_size: int | None = None
    """Number of those threads."""
    ready_share: float | None = None
    """Share of the time, 0..1, in which a finished item lay ready in its output queue, where the
    library keeps that."""
    measured_by: MeasuredBy = "pipeprof"

    @property
    def busy_share(self) -> float | None:
        """Share of the time, 0..1, in which the stage worked, of what its concurrency allows."""
        if self.busy_s is None or not self.concurrency or not self.elapsed_s > 0:
            return None
        return self.busy_s / (self.concurrency * self.elapsed_s)


@dataclass(frozen=True)
class PipelineThreads:
    """What all threads but the one that trains did while a loader was iterated."""

    elapsed_s: float
    cpu_s: float
    runqueue_s: float | None
    """Time that they were runnable without a core. ``None``: the system does not say."""
