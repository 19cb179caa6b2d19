"""What a simulated run is of: what batches ask for, the machine, and the loader's setting; and the
real runs that tell it."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from pipeprof.analyze.profile.batch_table import Columns


@dataclass(frozen=True)
class Demand:
    """What one batch asks of the machine."""

    latency_s: float = 0.0
    """Waited for while it is made: side by side for any number of workers."""
    link_bytes: float = 0.0
    """Over the storage's link, which all share."""
    cpu_s: float = 0.0
    """Of a core, to make it."""
    send_s: float = 0.0
    """Of a core, beside the worker's next batch: to serialise it. Not without workers."""
    send_held_s: float = 0.0
    """More to wait, at most, while the worker makes another batch and holds its interpreter."""
    gap_s: float = 0.0
    """Of a core, after it, before the worker is at its next."""
    receive_s: float = 0.0
    """Of a core, in main: to unpickle it and dispatch another. Not without workers."""
    receive_warm: float = 1.0
    """The share of ``receive_s`` that it takes when main has received another just before."""
    late_s: float = 0.0
    """To wait before main receives it: it is woken late, and so is who is to hand over files."""
    receive_held_s: float = 0.0
    """More to wait, at most, while its worker makes another batch, and is to hand over the files of
    its shared memory; or while all cores are busy."""
    step_s: float = 0.0
    """The training step on it, main's or the accelerator's."""
    step_cpu_s: float = 0.0
    """Of a core, in main, before that."""


@dataclass(frozen=True)
class Link:
    """The way from storage, shared by all workers."""

    total: float = inf
    """Bytes per second, of all streams together."""
    each: float = inf
    """Bytes per second of one stream."""
    burst: float = 0.0
    """Bytes that pass at ``peak`` after a rest."""
    peak: float = 0.0
    """Bytes per second while the burst lasts; at least ``total``."""


@dataclass(frozen=True)
class Machine:
    """Unless it says otherwise, nothing is scarce."""

    cores: float = inf
    contention_factor: float = 1.0
    """The speed of a core when all are busy, of that of one alone."""
    link: Link = Link()


@dataclass(frozen=True)
class Setting:
    """Of the loader, as torch names it."""

    num_workers: int
    prefetch_factor: int = 2
    in_order: bool = True

    @property
    def in_flight(self) -> int:
        """At most so many batches are dispatched and not handed out."""
        return self.num_workers * self.prefetch_factor

    @property
    def warmup(self) -> int:
        """Batches at a run's beginning that are not of its steady state."""
        return 2 * self.in_flight

    @property
    def unsteady(self) -> int:
        """Those, and as many at its end as are handed out while no more are dispatched."""
        return self.warmup + self.in_flight


@dataclass(frozen=True)
class Measured:
    """The steady part of a short run in one setting, as it was profiled."""

    setting: Setting
    columns: Columns

    @property
    def seconds(self) -> float:
        return float(self.columns.cycle_s.sum())

    @property
    def batches_per_s(self) -> float:
        return len(self.columns) / self.seconds
