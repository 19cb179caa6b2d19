"""The moments of a simulated run, and its rates."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from math import inf

import numpy as np
import numpy.typing as npt

from pipeprof.analyze.predict.workload import Setting
from pipeprof.analyze.profile.batch_table import Floats


@dataclass(frozen=True)
class SimulatedRun:
    """The moments of each batch, in order of delivery. [batches], seconds."""

    asked_s: Floats
    delivered_s: Floats
    done_s: Floats
    begun_s: Floats
    """When the fetch began."""
    made_s: Floats
    """When the batch was fetched and collated."""
    sent_s: Floats
    """When the worker had sent the batch; ``made_s`` without workers."""
    pinned_s: Floats
    """When a thread had pinned the batch; NaN where none does."""
    worker: npt.NDArray[np.int64]
    """Number of the worker; -1 for main."""
    order: tuple[int, ...] = field(repr=False)
    """Number of each batch, which is that of its demand."""

    @property
    def index(self) -> Floats:
        """Number of each batch, as in a recording."""
        return np.array(self.order, float)

    @property
    def wall_s(self) -> float:
        """Seconds from the first request for a batch to the end of the last step."""
        return float(self.done_s[-1] - self.asked_s[0])

    @property
    def batches_per_s(self) -> float:
        """Mean rate; infinite where no time passed."""
        return len(self.order) / self.wall_s if self.wall_s else inf

    @property
    def starved_fraction(self) -> float:
        """Share of the time in which main waited for batches, 0..1."""
        return float((self.delivered_s - self.asked_s).sum()) / self.wall_s if self.wall_s else 0.0

    def steady(self, setting: Setting) -> SimulatedRun:
        """Return the run without its first batches, and without its last, which were fetched ahead
        while others were handed out. At least one batch is left."""
        warmup = min(setting.warmup, max(0, len(self.order) - 1))
        spare = max(0, len(self.order) - warmup - 1)
        return self.after(warmup, min(spare, setting.in_flight))

    def after(self, warmup: int, end: int = 0) -> SimulatedRun:
        """Return the run without its first ``warmup`` batches and its last ``end``."""
        kept = slice(warmup, len(self.order) - end)
        return SimulatedRun(*(getattr(self, column.name)[kept] for column in fields(self)))
