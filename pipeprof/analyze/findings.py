"""Named pathologies that this run shows. One function per case; each returns its finding or None.

To add one: write the function, put it into `CASES`, and provoke it in a test.
"""

from __future__ import annotations

from collections.abc import Callable

from pipeprof.analyze.ceilings import cpu_per_batch
from pipeprof.analyze.diagnose import FEWEST_BATCHES
from pipeprof.analyze.summary import Summary
from pipeprof.model import Finding, Recording


def oversubscribed(recording: Recording, summary: Summary) -> Finding | None:
    """More workers than cores, and making a batch takes much longer than its CPU time."""
    workers, cores = recording.config.num_workers, recording.environment.cores
    made, cpu = summary.made.mean, cpu_per_batch(summary)
    if workers <= cores or not cpu / made > 0.3 or cpu / made > 0.8:
        return None
    return Finding(
        "cpu-oversubscribed",
        "More CPU-hungry workers than cores",
        f"{workers} workers on {cores} cores; making a batch took {made / cpu:.1f} times its "
        "CPU time.",
        f"Set num_workers to at most {cores}, or give the job more cores.",
    )


def quota(recording: Recording, summary: Summary) -> Finding | None:
    """Affinity or a cgroup gives fewer cores than the machine shows."""
    environment = recording.environment
    if environment.cores >= environment.cores_visible:
        return None
    return Finding(
        "fewer-cores-than-shown",
        "Fewer cores to use than the machine shows",
        f"{environment.cores} of {environment.cores_visible} cores may be used here (affinity or "
        "cgroup quota).",
        "Size num_workers by the cores that may be used, or raise the limit.",
    )


def too_few(recording: Recording, summary: Summary) -> Finding | None:
    if summary.measured >= FEWEST_BATCHES:
        return None
    return Finding(
        "too-few-batches",
        "Too few batches to say",
        f"{summary.measured} batches were measured after warm-up; a verdict needs "
        f"{FEWEST_BATCHES}.",
        "Run longer: more epochs, or more data.",
    )


def lost(recording: Recording, summary: Summary) -> Finding | None:
    if not recording.lost_records:
        return None
    return Finding(
        "lost-records",
        "Some batches could not be seen being made",
        f"The record of {recording.lost_records} batches did not arrive from its worker.",
        "Their stall is charged to unknown; the other figures leave them out.",
    )


CASES: tuple[Callable[[Recording, Summary], Finding | None], ...] = (
    oversubscribed,
    quota,
    too_few,
    lost,
)


def findings(recording: Recording, summary: Summary) -> tuple[Finding, ...]:
    seen = (case(recording, summary) for case in CASES)
    return tuple(finding for finding in seen if finding is not None)
