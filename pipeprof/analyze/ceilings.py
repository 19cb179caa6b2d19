"""The most samples/s that each resource allows, from one run: the pipeline roofline.

Each ceiling is a rate per batch times the samples of a batch. Those of storage say what the run's
makers of batches would get if they did nothing but read, as many requests at a time as they make.
"""

from __future__ import annotations

from pipeprof.analyze.stages import CPU, NATIVE
from pipeprof.analyze.storage import BANDWIDTH, CLIENT, LATENCY, StorageBound
from pipeprof.analyze.summary import Summary
from pipeprof.model import Ceiling, Environment, LoaderConfig, RequestStats
from pipeprof.units import counted, format_bytes, format_duration, format_rate

WORKERS = "workers"
WORKER_CPU = "worker-cpu"
ACCELERATOR = "accelerator"


def ceilings(
    summary: Summary,
    config: LoaderConfig,
    environment: Environment,
    requests: RequestStats | None,
    storage: StorageBound,
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
    if requests is not None and summary.sums["bytes"] and summary.sums["requests"]:
        found |= _of_storage(summary, config, requests, storage)
    return dict(sorted(found.items(), key=lambda item: item[1].samples_per_s))


def _of_storage(
    summary: Summary, config: LoaderConfig, requests: RequestStats, storage: StorageBound
) -> dict[str, Ceiling]:
    samples = summary.sums["samples"] / summary.measured
    size = summary.sums["bytes"] / summary.sums["samples"]
    per_batch = summary.sums["requests"] / summary.measured
    makers = max(1, config.num_workers)
    at_once = makers * requests.at_once
    beside = f"{counted(at_once, 'request')} at a time"
    found = {}
    if storage.bandwidth > 0:
        moved = at_once * storage.bandwidth
        found[BANDWIDTH] = Ceiling(
            moved / size, f"{beside}, {format_rate(moved)} in all / {format_bytes(size)} a sample"
        )
    if storage.latency_s > 0:
        found[LATENCY] = Ceiling(
            at_once * samples / (per_batch * storage.latency_s),
            f"{beside} × {samples:,.0f} samples / {counted(per_batch, 'request')} of "
            f"{format_duration(storage.latency_s)} each",
        )
    if storage.part == CLIENT and requests.client_cpu_s:
        cpu_s = requests.client_cpu_s * per_batch
        found[CLIENT] = Ceiling(
            makers * samples / cpu_s,
            f"{makers} × {samples:,.0f} samples / {format_duration(cpu_s)} of the client's CPU",
        )
    return found


def cpu_per_batch(summary: Summary) -> float:
    """CPU time to make a batch, native threads included where they were seen; NaN unknown."""
    cpu, native = summary.resources[CPU], summary.resources[NATIVE]
    return cpu.mean + (native.mean if native.count else 0.0)
