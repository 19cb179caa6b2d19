"""From what was measured to a profile: the one way there."""

from __future__ import annotations

from pipeprof.analyze.advise import advise
from pipeprof.analyze.blame import blame
from pipeprof.analyze.ceilings import ceilings
from pipeprof.analyze.columns import Columns, slice_log, steady
from pipeprof.analyze.diagnose import diagnose
from pipeprof.analyze.findings import findings
from pipeprof.analyze.stages import stage_stats, worker_stats
from pipeprof.analyze.stats import ratio_interval
from pipeprof.model import Profile, Recording, Throughput

KEPT_BATCHES = 2000
"""A saved profile holds the last so many batches."""


def assemble(recording: Recording, threshold: float = 0.05) -> Profile:
    """Analyse ``recording``; ``threshold`` is the starved share that counts as starved."""
    everything = Columns(recording.batches)
    mask = steady(everything, recording.warmup_batches)
    columns = everything.take(mask)
    charges = blame(columns)
    diagnosis = diagnose(columns, charges, threshold)
    roof = ceilings(columns, recording.config, recording.environment) if len(columns) else {}
    total = len(everything)
    return Profile(
        name=recording.name,
        created=recording.created,
        config=recording.config,
        environment=recording.environment,
        source=recording.source,
        cache=recording.cache,
        wall_s=float(columns.cycle_s.sum()),
        warmup_batches=total - len(columns),
        measured_batches=len(columns),
        first_batch_s=recording.first_batch_s,
        throughput=_throughput(columns),
        stages=stage_stats(columns),
        missing=recording.missing,
        workers=worker_stats(columns),
        stall_s=float(columns.wait_s.sum()),
        blame=charges,
        ceilings=roof,
        diagnosis=diagnosis,
        recommendations=advise(diagnosis, roof, recording.config, recording.environment),
        findings=findings(recording, columns),
        overhead=recording.overhead,
        batches=slice_log(recording.batches, max(0, total - KEPT_BATCHES), total),
        notes=recording.notes,
    )


def _throughput(columns: Columns) -> Throughput:
    wall_s = float(columns.cycle_s.sum())
    if not wall_s > 0:
        return Throughput(0.0, 0.0, 0.0, (0.0, 0.0))
    return Throughput(
        samples_per_s=float(columns.samples.sum()) / wall_s,
        batches_per_s=len(columns) / wall_s,
        bytes_per_s=float(columns.bytes.sum()) / wall_s,
        interval=ratio_interval(columns.samples, columns.cycle_s),
    )
