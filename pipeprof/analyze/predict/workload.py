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
    """Waiting while it is fetched, which any number of workers do at the same time."""
    link_bytes: float = 0.0
    """Read over the storage's link, which all workers share."""
    cpu_s: float = 0.0
    """CPU time to fetch and collate it."""
    send_s: float = 0.0
    """CPU time to serialise it, while the worker is at its next batch. Only with workers."""
    send_held_s: float = 0.0
    """Longest additional wait while the worker fetches another batch and holds its interpreter."""
    gap_s: float = 0.0
    """CPU time after it, before the worker begins its next."""
    receive_s: float = 0.0
    """CPU time of main to unpickle it and to dispatch another. Only with workers."""
    receive_warm: float = 1.0
    """Share of ``receive_s`` that it takes when main has received another just before."""
    late_s: float = 0.0
    """Wait before main receives it: main is woken late, and so is the worker that hands over the
    files of its shared memory."""
    receive_held_s: float = 0.0
    """Longest additional wait while its worker fetches another batch instead of handing over these
    files, or while all cores are busy."""
    step_s: float = 0.0
    """Time of the training step on it, of main or of the accelerator."""
    step_cpu_s: float = 0.0
    """CPU time of main before that."""


@dataclass(frozen=True)
class Link:
    """The connection to storage, which all workers share."""

    total: float = inf
    """Bytes per second, of all streams together."""
    each: float = inf
    """Bytes per second of one stream."""
    burst: float = 0.0
    """Bytes that pass at ``peak`` after the link was idle."""
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
        """The most batches that are dispatched and not yet handed out."""
        return self.num_workers * self.prefetch_factor

    @property
    def warmup(self) -> int:
        """Batches at a run's beginning that are not of its steady state."""
        return 2 * self.in_flight

    @property
    def unsteady(self) -> int:
        """Those, and the ones at its end that are handed out while no more are dispatched."""
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
