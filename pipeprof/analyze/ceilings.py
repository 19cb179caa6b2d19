"""The most samples/s that each resource allows, from one run: the pipeline roofline.

This first form knows the workers, the cores and the accelerator. Each ceiling is a rate per batch
times the samples of a batch.
"""

from __future__ import annotations

from pipeprof.analyze.stages import CPU, NATIVE
from pipeprof.analyze.summary import Summary
from pipeprof.model import Ceiling, Environment, LoaderConfig
from pipeprof.units import format_duration

WORKERS = "workers"
WORKER_CPU = "worker-cpu"
ACCELERATOR = "accelerator"


def ceilings(
    summary: Summary, config: LoaderConfig, environment: Environment
) -> dict[str, Ceiling]:
    """Lowest first. A ceiling whose numbers are not known is left out."""
    if not summary.measured:
        return {}
    samples = summary.sums["samples"] / summary.measured
    found = {}
    busy_s = summary.made.mean
    if busy_s > 0:
        # without workers the main process makes batches, and does not while a step runs
        makers = max(1, config.num_workers)
        found[WORKERS] = Ceiling(
            makers * samples / busy_s,
            f"{makers} × {samples:,.0f} samples / {format_duration(busy_s)} to make a batch",
        )
    cpu_s = cpu_per_batch(summary)
    if cpu_s > 0:
        found[WORKER_CPU] = Ceiling(
            environment.cores * samples / cpu_s,
            f"{environment.cores} cores × {samples:,.0f} samples / "
            f"{format_duration(cpu_s)} of CPU a batch",
        )
    step_s = summary.stages["step"].mean
    if step_s > 0:
        found[ACCELERATOR] = Ceiling(
            samples / step_s, f"{samples:,.0f} samples / {format_duration(step_s)} a step"
        )
    return dict(sorted(found.items(), key=lambda item: item[1].samples_per_s))


def cpu_per_batch(summary: Summary) -> float:
    """CPU time to make a batch, native threads included where they were seen; NaN unknown."""
    cpu, native = summary.resources[CPU], summary.resources[NATIVE]
    return cpu.mean + (native.mean if native.count else 0.0)
