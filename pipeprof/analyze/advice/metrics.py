"""What findings and advice go by: the figures of one run, per batch.

All are means over the steady state, in seconds unless they say otherwise. NaN is unknown; as it
compares false with everything, a rule on an unknown figure does not hold.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isnan, nan

from pipeprof.analyze.advice.proposal import Proposal
from pipeprof.analyze.profile.run_summary import Summary
from pipeprof.analyze.profile.stage_times import CPU, NATIVE, RUN_QUEUE
from pipeprof.analyze.profile.stall_attribution import MAIN, SAMPLER, WORKER_CPU
from pipeprof.analyze.profile.worker_activity import STAGES
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
"""What main spends at least on receiving a batch, and each tensor in it, from a worker that runs
beside it: to ask the worker for the tensor's descriptor, and to map it."""

_COUNTS = 0.05
"""Of a core."""


@dataclass(frozen=True)
class Facts:
    recording: Recording
    summary: Summary
    diagnosis: Diagnosis
    requests: RequestStats | None = None
    """Made of storage; ``None``: they were not observed."""
    more_workers: Proposal | None = None
    """What more of them would bring, as predicted; ``None``: they are not worth it."""

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
        """Loading is the limit: of an accelerator, or where there is none."""
        return self.diagnosis.verdict == "starved" or not self.diagnosis.has_step

    @property
    def workers(self) -> int:
        return self.config.num_workers

    @property
    def cores(self) -> int:
        """That the run may use."""
        return self.environment.cores

    @property
    def wanted_workers(self) -> object:
        """So many instead are worth it; ``None``: no more of them are."""
        return self.more_workers.figures["wanted"] if self.more_workers else None

    @property
    def prefetch(self) -> int:
        """Batches asked of each worker ahead of need."""
        return self.config.prefetch_factor or 2

    def per_batch(self, total: float) -> float:
        return total / self.summary.measured if self.summary.measured else nan

    @property
    def samples(self) -> float:
        return self.per_batch(self.summary.sums["samples"])

    @property
    def cycle_s(self) -> float:
        """One turn of the training loop."""
        return self.per_batch(self.summary.sums["wall_s"])

    @property
    def rate(self) -> float:
        """Samples/s, as measured."""
        return self.samples / self.cycle_s if self.cycle_s else nan

    def stage_s(self, stage: Stage) -> float:
        return self.summary.stages[str(stage)].mean

    @property
    def step_s(self) -> float:
        return self.stage_s(Stage.STEP)

    @property
    def made_s(self) -> float:
        """To make a batch: fetch and collate."""
        return self.summary.made.mean

    def share(self, resource: str) -> float:
        """0..1 of making a batch; of the batches that were sampled."""
        known = self.summary.share_of_fetch(resource)
        if resource == CPU and isnan(known) and self.made_s:
            return self.summary.resources[CPU].mean / self.made_s
        return known

    @property
    def cpu_s(self) -> float:
        """CPU time to make a batch, native threads included."""
        return self.summary.cpu_per_batch()

    @property
    def cores_rate(self) -> float:
        """Samples/s that the cores left for making batches allow, with any number of workers."""
        return self.samples * self.cores_left / self.cpu_s if self.cpu_s else nan

    @property
    def requests_per_batch(self) -> float:
        """Made of storage."""
        return self.per_batch(self.summary.sums["requests"])

    @property
    def native_share(self) -> float:
        """0..1 of that CPU time."""
        native = self.summary.resources[NATIVE]
        return native.mean / self.cpu_s if native.count and self.cpu_s else nan

    @property
    def work_s(self) -> float:
        """To make a batch if a core were always free."""
        waiting = self.share(RUN_QUEUE)
        return self.made_s * (1 - (0.0 if isnan(waiting) else waiting))

    @property
    def main_cores(self) -> float:
        """Cores that the training process keeps busy, making of batches left out; 0 if unknown."""
        main = self.main
        if main.cpu_s is None or not main.wall_s:
            return 0.0
        making = 0.0 if self.workers else self.cpu_s / self.cycle_s
        return max(0.0, main.cpu_s / main.wall_s - (0.0 if isnan(making) else making))

    @property
    def main_counts(self) -> bool:
        """Whether these are enough to speak of."""
        return self.main_cores >= _COUNTS

    @property
    def cores_left(self) -> float:
        """For making batches: this rank's, less what its training process keeps busy."""
        return max(0.5, self.cores / self.environment.ranks - self.main_cores)

    @property
    def cores_used(self) -> float:
        """Kept busy on average, by making batches and by the training process."""
        return self.cpu_s / self.cycle_s + self.main_cores

    @property
    def cores_wanted(self) -> float:
        """That would be busy if there were enough of them for what now waits for one."""
        return self.cores_used + self.share(RUN_QUEUE) * self.made_s / self.cycle_s

    @property
    def stolen(self) -> float:
        """0..1 of the machine's core time, by the host of this virtual machine."""
        share = self.main.stolen_share
        return nan if share is None else share

    @property
    def tensors(self) -> float:
        """In a batch, that travel one by one."""
        return self.summary.gauges["tensors"].mean

    @property
    def batch_bytes(self) -> float:
        """Of those tensors, in a large batch."""
        return self.summary.gauges["batch_bytes"].quantiles(0.95)[0]

    @property
    def travel_s(self) -> float:
        """The least that main spends on receiving such a batch from a worker."""
        return _TRAVEL_S + _TENSOR_TRAVEL_S * (0.0 if isnan(self.tensors) else self.tensors)

    @property
    def received_s(self) -> float:
        """What main itself spends on receiving a batch: typical, as a busy machine makes for a
        long tail. Estimated, at least so much, where no worker has sent one yet."""
        seen = self.summary.stages[str(Stage.UNPICKLE)]
        if seen.count:
            return seen.quantiles(0.5)[0]
        return 0.0 if self.workers else self.travel_s

    @property
    def picking_s(self) -> float:
        """What else main does while the accelerator waits: pick indices, wake up, hand out."""
        return self.blamed_s(SAMPLER) + self.blamed_s(MAIN)

    @property
    def slow_share(self) -> float:
        """0..1 of the batches took many times as long to make as the median one."""
        return self.summary.sums["slow"] / self.summary.watched if self.summary.watched else nan

    @property
    def slow_s(self) -> float:
        """To make such a batch; 0 where there is none."""
        sums = self.summary.sums
        return sums["slow_s"] / sums["slow"] if sums["slow"] else 0.0

    @property
    def slow_together(self) -> bool:
        """Workers are slow at the same time: they wait for the same, and none could pass another.

        The share of time spent on slow batches, while another worker is on one, would be the usual
        share if each were slow by itself, and 1 if all were so at once: it is nearer to 1.
        """
        sums, made = self.summary.sums, self.summary.made
        if not sums["concurrent_s"] or not made.total:
            return False
        usual = sums["slow_s"] / made.total
        return sums["concurrent_slow_s"] / sums["concurrent_s"] > (1 + usual) / 2

    @property
    def blamed_on_workers(self) -> float:
        """0..1 of the stall: making batches, and having no core for that."""
        return self.blamed(*STAGES, WORKER_CPU)

    @property
    def limited(self) -> str | None:
        """The stage that waits for something which gives so much a second, and no more."""
        return self.summary.limited

    def blamed(self, *causes: str) -> float:
        """0..1 of the stall."""
        stall_s = self.summary.sums["stall_s"]
        return sum(self.summary.blame[cause] for cause in causes) / stall_s if stall_s else nan

    def blamed_s(self, cause: str) -> float:
        """Of the stall, per batch."""
        return self.per_batch(self.summary.blame[cause])
