"""Flatten a profile or a job to named figures for W&B, MLflow, TensorBoard and other trackers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import isfinite

from pipeprof.model import Profile, TrainingJob


def metrics(profile: Profile, prefix: str = "pipeprof/") -> dict[str, float]:
    """Return name → figure, the verdict first.

    Times are in seconds, rates per second and shares 0..1. Unknown figures and NaN are left out.
    """
    return _known(_figures(profile), prefix)


def job_metrics(job: TrainingJob, prefix: str = "pipeprof/") -> dict[str, float]:
    """Return name → figure of all ranks of a job together, as `metrics` does of one."""
    return _known(((f"job/{name}", value) for name, value in _job_figures(job)), prefix)


def _known(figures: Iterable[tuple[str, float | None]], prefix: str) -> dict[str, float]:
    return {
        prefix + name: float(value)
        for name, value in figures
        if value is not None and isfinite(value)
    }


def _job_figures(job: TrainingJob) -> Iterator[tuple[str, float | None]]:
    yield "ranks", job.world_size
    yield "missing_ranks", len(job.missing)
    yield "steps", job.steps
    if not job.steps:
        return
    yield "starved_fraction", job.starved_fraction
    yield "starved_fraction_low", job.starved_interval[0]
    yield "starved_fraction_high", job.starved_interval[1]
    yield "samples_per_s", job.samples_per_s
    yield "step_s", job.cycle_s
    for cause, share in job.blame.items():
        yield f"blame/{cause}", share
    for cure in job.cures:
        if cure.of in ("tails", "loading"):
            yield f"gain_without/{cure.of}", cure.gain
    if job.ranks:
        yield "worst_rank", job.ranks[0].rank
        yield "worst_rank_stall_share", job.ranks[0].stall_share


def _figures(profile: Profile) -> Iterator[tuple[str, float | None]]:
    yield from _verdict(profile)
    for stage, stats in profile.stages.items():
        if stats.source != "unknown":
            for figure in ("mean_s", "p50_s", "p95_s", "p99_s"):
                yield f"stages/{stage}/{figure}", getattr(stats, figure)
    for cause, seconds in profile.blame.items():
        yield f"blame/{cause}", seconds / profile.stall_s if profile.stall_s > 0 else None
    for name, ceiling in profile.ceilings.items():
        yield f"ceilings/{name}/samples_per_s", ceiling.samples_per_s
    for each in profile.pipeline:
        yield f"pipeline/{each.name}/busy_share", each.busy_share
        yield f"pipeline/{each.name}/items", each.items
        yield f"pipeline/{each.name}/busy_s", each.busy_s
        yield f"pipeline/{each.name}/cpu_s", each.cpu_s
        yield f"pipeline/{each.name}/waited_s", each.waited_s
    if (depth := profile.queue_depth) is not None:
        yield "queue/mean", depth.mean
        yield "queue/empty_share", depth.empty_share
    if (device := profile.device) is not None:
        yield "device/utilisation", device.utilisation
        yield "device/memory_bytes", device.memory_bytes
    if (pauses := profile.pauses) is not None:
        yield "pauses/count", pauses.count
        yield "pauses/total_s", pauses.total_s
        yield "pauses/longest_s", pauses.longest_s
        yield "pauses/as_steps/starved_fraction", pauses.as_steps.starved_fraction
    if (requests := profile.requests) is not None:
        yield "requests/count", requests.count
        yield "requests/retries", requests.retries
    yield "lost_records", profile.lost_records
    yield "overhead_share", profile.overhead.share
    yield "core_wait_share", profile.core_wait_share
    yield "stolen_share", profile.stolen_share


def _verdict(profile: Profile) -> Iterator[tuple[str, float | None]]:
    diagnosis, rates = profile.diagnosis, profile.throughput
    yield "measured_batches", profile.measured_batches
    if profile.measured_batches and not diagnosis.unjudged:
        yield "starved_fraction", diagnosis.starved_fraction
        yield "starved_fraction_low", diagnosis.starved_interval[0]
        yield "starved_fraction_high", diagnosis.starved_interval[1]
        yield "accelerator_utilisation", diagnosis.accelerator_utilisation
    if profile.measured_batches:
        yield "samples_per_s", rates.samples_per_s
        yield "batches_per_s", rates.batches_per_s
        yield "bytes_per_s", rates.bytes_per_s
        yield "stall_s", profile.stall_s
    yield "first_batch_s", profile.first_batch_s
