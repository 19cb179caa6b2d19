"""Compute the figures of one run that findings and advice are based on.

All are means per batch over the steady state. NaN is unknown; every comparison with it is false, so
a rule on an unknown figure does not hold.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isnan, nan

from pipeprof.analyze.advice.proposal import Proposal
from pipeprof.analyze.predict.workload import Setting
from pipeprof.analyze.profile.run_summary import Summary
from pipeprof.analyze.profile.stage_times import CPU, NATIVE, RUN_QUEUE
from pipeprof.analyze.profile.stall_attribution import MAIN, OTHER_LOADERS, SAMPLER, WORKER_CPU
from pipeprof.analyze.profile.worker_activity import STAGES
from pipeprof.analyze.thresholds import MINOR_SHARE
from pipeprof.model import (
    Diagnosis,
    Environment,
    LoaderConfig,
    MainProcess,
    Recording,
    RequestStats,
    Stage,
)

_TRAVEL_S, _TENSOR_TRAVEL_S = 0.3e-3, 0.15e-3
"""Least seconds that main spends on receiving a batch from a worker, and on each of its tensors. It
asks the worker for the tensor's descriptor, and maps it."""
_COMPUTES_ITSELF = 0.8
"""Share of the time to build a batch from which on the building thread waits for no other."""
_LEAST_CORE_SHARE = 0.05
"""Share of a core below which the training process is not worth mentioning."""


@dataclass(frozen=True)
class Facts:
    """One analysed run. Its properties are also the names that templates of texts may use."""

    recording: Recording
    summary: Summary
    diagnosis: Diagnosis
    requests: RequestStats | None = None
    """The storage requests; ``None`` where they were not observed."""
    more_workers: Proposal | None = None
    """More workers with their predicted gain; ``None`` where they are not worth it."""
    native_computes: bool = False
    """Whether native threads of the training process are taken to compute in all their CPU time."""

    @property
    def config(self) -> LoaderConfig:
        return self.recording.config

    @property
    def environment(self) -> Environment:
        return self.recording.environment

    @property
    def main(self) -> MainProcess:
        return self.recording.main

    @property
    def starved(self) -> bool:
        """Whether this loader is a limit; always true where there is no training step. The loop may
        wait for other loaders alone."""
        sums, others_s = self.summary.sums, self.summary.sums["others_stall_s"]
        waits = sums["stall_s"] - others_s >= self.diagnosis.threshold * sums["wall_s"]
        would_wait = others_s > 0 and self.made_s > max(1, self.workers) * self.step_s
        limits = self.diagnosis.verdict == "starved" and (waits or would_wait)
        return limits or not self.diagnosis.has_step

    @property
    def awaited_others(self) -> str | None:
        """The names of other loaders for which the loop waits in its steps, or would if this one
        were faster; ``None`` if for none, or hardly."""
        waits = self.blamed(OTHER_LOADERS) >= MINOR_SHARE
        names = [each.name for each in self.recording.other_loaders
                 if waits or (each.made_every_s or 0.0) > self.step_s]  # fmt: skip
        return " and ".join(names) or None

    @property
    def workers(self) -> int:
        return self.config.num_workers

    @property
    def cores(self) -> int:
        """Number of cores that the run may use."""
        return self.environment.cores

    @property
    def reads_elsewhere(self) -> bool:
        """Whether rank 0 reads the batches of this rank, which is another one."""
        dispatch = self.recording.dispatch
        return dispatch is not None and dispatch.rank > 0

    @property
    def wanted_workers(self) -> object:
        """The number of workers that is proposed; ``None`` where more are not worth it."""
        return self.more_workers.figures["wanted"] if self.more_workers else None

    @property
    def prefetch(self) -> int:
        """Batches that are requested from each worker in advance."""
        return self.config.prefetch_factor or 2

    def may_set(self, name: str) -> bool:
        """Return whether the user can change this setting of the loader."""
        return name not in self.config.fixed

    @property
    def setting(self) -> Setting:
        """The setting of the run, as it is simulated."""
        pins = bool(self.workers) and self.config.pin_memory and self.stage_s(Stage.PIN) > 0
        return Setting(self.workers, self.prefetch, self.config.in_order, pins)

    def per_batch(self, total: float) -> float:
        """Return a sum over all measured batches as a mean; NaN where none was measured."""
        return total / self.summary.measured if self.summary.measured else nan

    @property
    def samples(self) -> float:
        """Samples in a batch."""
        return self.per_batch(self.summary.sums["samples"])

    @property
    def cycle_s(self) -> float:
        """Seconds of one cycle of the training loop."""
        return self.per_batch(self.summary.sums["wall_s"])

    @property
    def rate(self) -> float:
        """Measured samples/s."""
        return self.samples / self.cycle_s if self.cycle_s else nan

    def stage_s(self, stage: Stage) -> float:
        """Return the mean seconds of a stage."""
        return self.summary.stages[str(stage)].mean

    @property
    def step_s(self) -> float:
        """Seconds that the accelerator takes for a batch: the training step, and that part of the
        loop's wait in which the accelerator was still busy."""
        sums = self.summary.sums
        hidden_s = sums["wait_s"] + sums["others_s"] - sums["stall_s"]
        return self.host_step_s + self.per_batch(hidden_s)

    @property
    def others_received_s(self) -> float:
        """Seconds of a cycle in which the loop receives the batches of other loaders."""
        return self.per_batch(self.summary.sums["others_received_s"])

    @property
    def host_step_s(self) -> float:
        """Seconds from a batch to the request for the next one, as the training loop sees it."""
        return self.stage_s(Stage.STEP)

    @property
    def made_s(self) -> float:
        """Seconds to build a batch: fetch and collate."""
        return self.summary.made.mean

    def share(self, resource: str) -> float:
        """Return the share of a resource in the time to build a batch, 0..1, where sampled."""
        known = self.summary.share_of_fetch(resource)
        if resource == CPU and isnan(known) and self.made_s:
            return min(1.0, self.summary.resources[CPU].mean / self.made_s)
        return known

    @property
    def cpu_s(self) -> float:
        """CPU seconds to build a batch; those of native threads only where they compute."""
        all_s = self.summary.cpu_per_batch()
        return all_s * (1 - self.native_share) if self.threads_may_wait else all_s

    @property
    def threads_may_wait(self) -> bool:
        """Whether native threads of the training process may use their cores to wait, as those of
        torch and OpenCV do between two operations. Workers have one thread for torch's."""
        own_s = self.summary.resources[CPU].mean
        busy = not self.workers and own_s >= _COMPUTES_ITSELF * self.made_s
        return busy and self.native_share >= MINOR_SHARE and not self.native_computes

    @property
    def cores_rate(self) -> float:
        """Samples/s that `cores_left` allow with any number of workers."""
        return self.samples * self.cores_left / self.cpu_s if self.cpu_s else nan

    @property
    def requests_per_batch(self) -> float:
        """Storage requests that a batch takes."""
        return self.per_batch(self.summary.sums["requests"])

    @property
    def native_share(self) -> float:
        """Share of native threads in `cpu_s`, 0..1."""
        cpu, native = (self.summary.resources[name] for name in (CPU, NATIVE))
        sampled_s = cpu.mean + native.mean if native.count else 0.0
        return native.mean / sampled_s if sampled_s else nan

    @property
    def work_s(self) -> float:
        """Seconds to build a batch if a core were always free."""
        waiting = self.share(RUN_QUEUE)
        return self.made_s * (1 - (0.0 if isnan(waiting) else waiting))

    @property
    def main_cores(self) -> float:
        """Cores that the training process keeps busy, except by building batches; 0 if unknown."""
        main = self.main
        if main.cpu_s is None or not main.wall_s:
            return 0.0
        building = 0.0 if self.workers else self.summary.cpu_per_batch() / self.cycle_s
        return max(0.0, main.cpu_s / main.wall_s - (0.0 if isnan(building) else building))

    @property
    def main_counts(self) -> bool:
        """Whether `main_cores` is worth mentioning."""
        return self.main_cores >= _LEAST_CORE_SHARE

    @property
    def cores_left(self) -> float:
        """Cores of this rank for building batches, without those that `main_cores` keeps busy."""
        return max(0.5, self.cores / self.environment.ranks - self.main_cores)

    @property
    def cores_used(self) -> float:
        """Cores that building batches and the training process keep busy on average."""
        return self.summary.cpu_per_batch() / self.cycle_s + self.main_cores

    @property
    def cores_wanted(self) -> float:
        """Cores that would be busy if no batch had to wait for one."""
        return self.cores_used + self.share(RUN_QUEUE) * self.made_s / self.cycle_s

    @property
    def stolen(self) -> float:
        """Share of core time that the host of this virtual machine gave to others, 0..1."""
        return nan if (share := self.main.stolen_share) is None else share

    @property
    def tensors(self) -> float:
        """Tensors in a batch, which are transferred one by one."""
        return self.summary.gauges["tensors"].mean

    @property
    def batch_bytes(self) -> float:
        """Bytes of the tensors in a large batch, the 95th percentile."""
        return self.summary.gauges["batch_bytes"].quantiles(0.95)[0]

    @property
    def travel_s(self) -> float:
        """Least seconds that main spends on receiving such a batch from a worker."""
        return _TRAVEL_S + _TENSOR_TRAVEL_S * (0.0 if isnan(self.tensors) else self.tensors)

    @property
    def received_s(self) -> float:
        """Median seconds that main spends on receiving a batch; a busy machine has a long tail.
        Without workers it is a lower bound."""
        unpickle = self.summary.stages[str(Stage.UNPICKLE)]
        if unpickle.count:
            return unpickle.quantiles(0.5)[0]
        return 0.0 if self.workers else self.travel_s

    @property
    def picking_s(self) -> float:
        """Seconds of stall in which main picks indices, wakes up, and hands the batch out."""
        return self.blamed_s(SAMPLER) + self.blamed_s(MAIN)

    @property
    def slow_share(self) -> float:
        """Share of slow batches, 0..1: they take many times as long to build as the median."""
        return self.summary.sums["slow"] / self.summary.watched if self.summary.watched else nan

    @property
    def slow_s(self) -> float:
        """Seconds to build a slow batch; 0 where there is none."""
        sums = self.summary.sums
        return sums["slow_s"] / sums["slow"] if sums["slow"] else 0.0

    @property
    def blamed_on_workers(self) -> float:
        """Share of the stall, 0..1, charged to building batches or to a lack of cores for it."""
        return self.blamed(*STAGES, WORKER_CPU)

    @property
    def limited(self) -> str | None:
        """The stage that waits for a shared resource of fixed rate; ``None`` if none does."""
        return self.summary.charges.limited

    def blamed(self, *causes: str) -> float:
        """Return the share of the stall that is charged to these causes, 0..1."""
        stall_s = self.summary.sums["stall_s"]
        blame = self.summary.charges.blame
        return sum(blame[cause] for cause in causes) / stall_s if stall_s else nan

    def blamed_s(self, cause: str) -> float:
        """Return the seconds of stall per batch that are charged to this cause."""
        return self.per_batch(self.summary.charges.blame[cause])
