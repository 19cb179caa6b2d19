"""Keep the running figures of a run, which include batches that it no longer holds."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from pipeprof.analyze.profile.batch_table import Columns, Mask, steady, warmed_up
from pipeprof.analyze.profile.covariate_mean import CovariateMean
from pipeprof.analyze.profile.histogram import Series, Sketch
from pipeprof.analyze.profile.pauses import PauseFinder
from pipeprof.analyze.profile.slow_batches import slow_batches
from pipeprof.analyze.profile.stage_times import (
    BLOCKED,
    CPU,
    NATIVE,
    RUN_QUEUE,
    queue_depth,
    resource_seconds,
    stage_seconds,
)
from pipeprof.analyze.profile.stall_charges import StallCharges
from pipeprof.analyze.profile.worker_sketches import INSIDE, WorkerSketches, add_workers, measured
from pipeprof.model import BY_LENGTH, Source, Stage, StageStats, WorkerStats

GAUGES = ("private_bytes", "descriptors", "threads", "tensors", "batch_bytes", "loose_bytes",
          "collate_new_bytes")  # fmt: skip
COUNTERS = ("logical_bytes", "physical_bytes", "syscalls")
_CLOCKED = ("samples", "wait_s", "others_s", "others_stall_s", "others_received_s")
_COUNTED = ("bytes", "requests", "h2d_bytes", "sampler_s")


class Summary:
    """Running figures of a run, which grow by `add`.

    They are of the steady state, except ``total``, ``gauges``, ``memory`` and those of pauses.
    """

    def __init__(self, warmup: int) -> None:
        """``warmup`` is the number of first batches of an epoch that are not measured."""
        self._warmup = warmup
        self.total = 0
        self.warmed_up = 0
        """Batches past warm-up: measured, or left out because of a pause."""
        self.measured = self.watched = 0
        """Measured batches, and those of them that were sampled with all their records."""
        self.sums: defaultdict[str, float] = defaultdict(float)
        """Sums over measured batches: ``wall_s``, ``stall_s`` of this loader and others, and
        `_CLOCKED`.

        Past warm-up: ``pause_s``. Of ``watched`` batches: ``watched_stall_s``, ``bytes``,
        ``requests``, ``h2d_bytes``, ``sampler_s``, ``device_batches``, ``device_wait_s``,
        ``device_busy_s``, and ``empty``, how often none was ready when one was asked for. Of slow
        ones: ``slow``, their number, ``slow_s`` to fetch them, ``slow_stall_s``, and
        ``concurrent_s`` and ``concurrent_slow_s`` of `SlowBatches`. Of batches whose resources were
        sampled: `COUNTERS`, and ``sampled_bytes``, the logical bytes of storage.
        """
        self.stages: defaultdict[str, Sketch] = defaultdict(Sketch)
        self.resources: defaultdict[str, Sketch] = defaultdict(Sketch)
        self.gauges: defaultdict[str, Sketch] = defaultdict(Sketch)
        self.made = Sketch()
        """Seconds to fetch and collate a batch."""
        self._cpu = CovariateMean()
        self.depth = Sketch()
        """Batches that lay ready when one was asked for."""
        self.charges = StallCharges()
        self.workers: defaultdict[int, WorkerSketches] = defaultdict(WorkerSketches)
        self.series = Series(("stall_s", "cycle_s", "samples"))
        self.memory: defaultdict[int, list[tuple[float, float]]] = defaultdict(list)
        """Worker → (moment in seconds, private bytes), warm-up included."""
        self._pause_finder = PauseFinder(warmup)
        self._stalled_share: float | None = None
        """Share of the last waits in which the accelerator was idle; ``None``: not observed."""
        self.pauses: defaultdict[int, Sketch] = defaultdict(Sketch)
        """`BatchLog.pause_kind` → seconds of each pause."""
        self.rested = 0
        """Batches past warm-up that lay ready when a pause ended."""
        self.as_steps = Series(("stall_s", "cycle_s"))
        """All batches past warm-up, with pauses counted as part of the step."""

    def add(self, columns: Columns, main_core_wait: float | None = None) -> Columns:
        """Add the next batches of the run, in the order of their delivery. ``main_core_wait`` is
        the share of the run in which main's loop waited for a core. Returns the batches with the
        pauses that were found by length."""
        if not len(columns):
            return columns
        marked = self._pause_finder.mark(columns)
        self._add(self._with_stalls(marked), main_core_wait)
        return marked

    def _with_stalls(self, columns: Columns) -> Columns:
        """Return ``columns`` with an estimate of how long the accelerator was idle before batches
        around which it was not observed, where it was around others. See `Columns.stall_s`."""
        known = np.isfinite(columns.device_wait_s)
        steadily = known & steady(columns, self._warmup)
        wait_s = columns.wait_s
        if wait_s[steadily].sum() > 0:
            self._stalled_share = float(columns.stall_s[steadily].sum() / wait_s[steadily].sum())
        if known.all() or self._stalled_share is None:
            return columns
        estimated_s = wait_s * self._stalled_share
        return columns.replaced(device_wait_s=np.where(known, columns.device_wait_s, estimated_s))

    def _add(self, columns: Columns, main_core_wait: float | None) -> None:
        self.total += len(columns)
        self._add_pauses(columns)
        mask = steady(columns, self._warmup)
        self._add_clocked(columns.take(mask))
        watched = columns.watched
        if watched.any():
            self._add_watched(columns.take(watched), mask[watched], main_core_wait)

    def _add_clocked(self, columns: Columns) -> None:
        """Add what is known of every measured batch."""
        self.measured += len(columns)
        self.series.add(columns.starved_s, columns.cycle_s, columns.samples)
        for stage, seconds in ((Stage.WAIT, columns.wait_s), (Stage.STEP, columns.step_s)):
            self.stages[str(stage)].add(seconds)
        for name in _CLOCKED:
            self.sums[name] += float(np.nansum(getattr(columns, name)))
        self.sums["stall_s"] += float(np.nansum(columns.starved_s))
        self.sums["wall_s"] += float(columns.cycle_s.sum())

    def _add_watched(self, columns: Columns, mask: Mask, main_core_wait: float | None) -> None:
        """Add what follows from the records of sampled batches: of all of them gauges and memory,
        and else of those in ``mask``."""
        self._add_memory(columns)
        for gauge in GAUGES:
            self.gauges[gauge].add(getattr(columns, gauge))
        depth = queue_depth(columns, self._warmup)[mask]
        seconds = {name: values[mask] for name, values in stage_seconds(columns).items()}
        self.charges.add(columns, mask, main_core_wait)
        columns = columns.take(mask)
        if not len(columns):
            return
        self.watched += len(columns)
        self.sums["watched_stall_s"] += float(columns.starved_s.sum())
        self.depth.add(depth)
        self.sums["empty"] += float((depth < 0.5).sum())
        self.made.add(columns.made_s)
        self._add_sums(columns)
        self._add_slow(columns)
        for name, values in seconds.items():
            if name not in (Stage.WAIT, Stage.STEP):
                self.stages[str(name)].add(values)
        resources = resource_seconds(columns)
        for resource, values in resources.items():
            self.resources[resource].add(values)
        self._cpu.add(resources[CPU] + np.nan_to_num(resources[NATIVE]), columns.made_s)
        add_workers(self.workers, columns, seconds)

    def extrapolate(self) -> None:
        """Scale the sums of sampled batches to all batches. Call it once, after the last `add`."""
        if self.watched == self.measured:
            return
        scale = self.measured / self.watched if self.watched else 0.0
        for name in _COUNTED:
            self.sums[name] *= scale
        charged = self.charges.extrapolate(
            self.sums["watched_stall_s"], self.sums["stall_s"], scale
        )
        self.sums["slow_stall_s"] *= charged

    def stage_stats(self) -> dict[str, StageStats]:
        """Return the figures of each stage, but not of stages inside a data set that is opaque."""
        moved = {str(Stage.READ): ("bytes", "requests"), str(Stage.H2D): ("h2d_bytes", "")}
        result = {}
        for stage in Stage:
            sketch = self.stages[str(stage)]
            if not sketch.count or (stage in INSIDE and not sketch.total):
                continue
            size, requests = moved.get(str(stage), ("", ""))
            result[str(stage)] = sketch.stats(
                self._source(stage), self.sums[size], self.sums[requests]
            )
        return result

    def resource_stats(self) -> dict[str, StageStats]:
        """Return the figures of each resource of the workers."""
        return measured(self.resources)

    def worker_stats(self) -> tuple[WorkerStats, ...]:
        """Return the figures of each worker, by its number."""
        return tuple(
            WorkerStats(number, worker.batches, measured(worker.stages))
            for number, worker in sorted(self.workers.items())
        )

    def share_of_fetch(self, resource: str) -> float:
        """Return the share of ``resource`` in the fetch time, 0..1, of the batches whose resources
        were all sampled; NaN unknown."""
        resources = self.resources
        sampled_s = sum(resources[name].total for name in (CPU, RUN_QUEUE, BLOCKED))
        known = resources[RUN_QUEUE].count and sampled_s
        return resources[resource].total / sampled_s if known else float("nan")

    def cpu_per_batch(self) -> float:
        """Return the CPU seconds to fetch a batch, native threads included where known; NaN
        unknown."""
        return self._cpu.at(self.made.mean)

    def _source(self, stage: Stage) -> Source:
        """Return whether the figures of ``stage`` are measured or estimated. Serialising that was
        not observed is part of the time that a batch seems to lie ready. The pause in a long step
        is estimated from the other steps."""
        if stage is Stage.PAUSE and BY_LENGTH in self.pauses:
            return "estimated"
        guessed = stage in (Stage.READY, Stage.REORDER) and not self.stages[Stage.SERIALISE].count
        return "estimated" if guessed else "measured"

    def _add_sums(self, columns: Columns) -> None:
        """Add counters, and the times of the accelerator."""
        sums = self.sums
        for name in _COUNTED:
            sums[name] += float(np.nansum(getattr(columns, name)))
        counted = np.isfinite(columns.logical_bytes) & np.isfinite(columns.physical_bytes)
        for name in COUNTERS:
            sums[name] += float(np.nansum(getattr(columns, name)[counted]))
        sums["sampled_bytes"] += float(np.nansum(columns.bytes[np.isfinite(columns.logical_bytes)]))
        on_device = np.isfinite(columns.device_busy_s)
        sums["device_batches"] += float(on_device.sum())
        for name in ("device_wait_s", "device_busy_s"):
            sums[name] += float(getattr(columns, name)[on_device].sum())

    def _add_pauses(self, columns: Columns) -> None:
        """Add pauses, and the batches past warm-up with pauses as part of the step."""
        known = (columns.pause_s > 0) & np.isfinite(columns.pause_kind)
        for kind in np.unique(columns.pause_kind[known]):
            self.pauses[int(kind)].add(columns.pause_s[columns.pause_kind == kind])
        self.stages[str(Stage.PAUSE)].add(columns.pause_s)
        columns = columns.take(warmed_up(columns, self._warmup))
        self.warmed_up += len(columns)
        self.rested += int((columns.rested == 1).sum())
        self.sums["pause_s"] += float(columns.paused_s.sum())
        self.as_steps.add(columns.starved_s, columns.done_s - columns.asked_s)

    def _add_slow(self, columns: Columns) -> None:
        slow = slow_batches(columns)
        self.sums["slow"] += float(slow.mask.sum())
        self.sums["slow_s"] += float(columns.made_s[slow.mask].sum())
        self.sums["slow_stall_s"] += float(columns.stall_s[slow.mask].sum())
        self.sums["concurrent_s"] += slow.concurrent_s
        self.sums["concurrent_slow_s"] += slow.concurrent_slow_s

    def _add_memory(self, columns: Columns) -> None:
        """Add the private bytes of each worker over time, at most 1024 points each."""
        for place in np.flatnonzero(np.isfinite(columns.private_bytes)):
            points = self.memory[int(columns.worker[place])]
            points.append((float(columns.fetch_end_s[place]), float(columns.private_bytes[place])))
            if len(points) > 1024:
                del points[1::2]
