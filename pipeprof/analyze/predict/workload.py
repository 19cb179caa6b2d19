"""Describe the input of a simulation: the demands of batches, the machine, the loader's setting,
and the measured runs from which these follow."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np

from pipeprof.analyze.profile.batch_table import Columns, Floats


@dataclass(frozen=True)
class Demand:
    """What one batch asks of the machine. Times are in seconds."""

    latency_s: float = 0.0
    """Waiting time of the fetch that any number of workers can spend concurrently."""
    link_bytes: float = 0.0
    """Bytes read over the storage's link, which all workers share."""
    cpu_s: float = 0.0
    """CPU time to fetch and collate the batch."""
    send_s: float = 0.0
    """CPU time to serialise the batch while its worker fetches the next. Only with workers."""
    send_blocked_s: float = 0.0
    """Longest additional wait of the sender while its worker fetches and holds the interpreter."""
    gap_s: float = 0.0
    """CPU time between this batch and the next one of its worker."""
    receive_s: float = 0.0
    """CPU time to unpickle the batch, of main or of the thread that pins; main's includes that to
    dispatch another. Only with workers."""
    receive_warm: float = 1.0
    """Share of ``receive_s`` that is needed when another batch was received just before."""
    late_s: float = 0.0
    """Wait before a batch is received: main is woken late, and so is the worker that hands over the
    files of its shared memory."""
    receive_blocked_s: float = 0.0
    """Longest additional wait while its worker fetches another batch instead of handing over these
    files, or while all cores are busy."""
    pin_s: float = 0.0
    """Time of a thread to pin the batch, where ``pin_memory`` is on."""
    take_s: float = 0.0
    """CPU time of main to take a pinned batch and to dispatch another."""
    step_s: float = 0.0
    """Time of the training step, on main or on the accelerator."""
    step_cpu_s: float = 0.0
    """CPU time of main before the step."""


@dataclass(frozen=True)
class Link:
    """The connection to storage, which all workers share."""

    total: float = inf
    """Bytes per second of all streams together."""
    each: float = inf
    """Bytes per second of one stream."""
    burst: float = 0.0
    """Bytes that pass at ``peak`` after the link was idle."""
    peak: float = 0.0
    """Bytes per second while the burst lasts; at least ``total``."""


@dataclass(frozen=True)
class Machine:
    """The machine of a simulated run. By default nothing is scarce."""

    cores: float = inf
    contention_factor: float = 1.0
    """Speed of a core when all are busy, relative to one that is busy alone."""
    link: Link = Link()


@dataclass(frozen=True)
class Setting:
    """The setting of a loader, with torch's names."""

    num_workers: int
    prefetch_factor: int = 2
    in_order: bool = True
    pin_memory: bool = False
    """Whether a thread of the main process receives the batches of workers, and pins them."""

    @property
    def in_flight(self) -> int:
        """Most batches that are dispatched and not yet handed out."""
        return self.num_workers * self.prefetch_factor

    @property
    def warmup(self) -> int:
        """Batches at the beginning of a run before its steady state."""
        return 2 * self.in_flight

    @property
    def unsteady(self) -> int:
        """Batches of the warm-up, and those at the end, after the last one was dispatched."""
        return self.warmup + self.in_flight


@dataclass(frozen=True)
class Measured:
    """The steady part of a short profiled run in one setting."""

    setting: Setting
    columns: Columns

    def step_s(self, setting: Setting) -> Floats:
        """Return how long the accelerator takes for each batch with ``setting``. [batches]

        A loop that queues work ahead of its accelerator waits for batches while that is busy. For
        the simulation, which knows one clock, such a wait is part of the step. Main may receive a
        batch meanwhile, which the simulation adds to the step; so it is left out here. Without
        workers the loop itself fetches while the accelerator is busy, and its own step counts. So
        does receiving the batches of other loaders, which are taken to be ready.
        """
        columns, hidden_s = self.columns, self.columns.hidden_s
        hidden_of_others_s = columns.others_s - columns.others_stall_s
        kept_s = np.maximum(columns.others_received_s, hidden_of_others_s)
        step_s: Floats = columns.step_s + kept_s
        if not setting.num_workers or not hidden_s.any():
            return step_s
        receiving_s = np.nan_to_num(columns.arrived_s - columns.received_s)
        return step_s + np.maximum(0.0, hidden_s - receiving_s)

    @property
    def seconds(self) -> float:
        """Seconds of all cycles of the training loop, pauses left out."""
        return float(self.columns.cycle_s.sum())

    @property
    def batches_per_s(self) -> float:
        """Mean rate of the run."""
        return len(self.columns) / self.seconds
