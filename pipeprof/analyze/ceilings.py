"""The most samples/s that each resource allows, from one run: the pipeline roofline.

This first form knows the workers, the cores and the accelerator. Each ceiling is a rate per batch
times the samples of a batch.
"""

from __future__ import annotations

import numpy as np

from pipeprof.analyze.columns import Columns
from pipeprof.model import Ceiling, Environment, LoaderConfig
from pipeprof.units import format_duration

WORKERS = "workers"
WORKER_CPU = "worker-cpu"
ACCELERATOR = "accelerator"


def ceilings(
    columns: Columns, config: LoaderConfig, environment: Environment
) -> dict[str, Ceiling]:
    """Lowest first. A ceiling whose numbers are not known is left out."""
    samples = float(columns.samples.mean())
    found = {}
    busy_s = float(np.nanmean(columns.fetch_end_s - columns.fetch_start_s)) if _made(columns) else 0
    if busy_s > 0:
        # without workers the main process makes batches, and does not while a step runs
        makers = max(1, config.num_workers)
        found[WORKERS] = Ceiling(
            makers * samples / busy_s,
            f"{makers} × {samples:,.0f} samples / {format_duration(busy_s)} to make a batch",
        )
    cpu_s = float(np.nanmean(columns.cpu_s)) if _made(columns) else 0
    if cpu_s > 0:
        found[WORKER_CPU] = Ceiling(
            environment.cores * samples / cpu_s,
            f"{environment.cores} cores × {samples:,.0f} samples / "
            f"{format_duration(cpu_s)} of CPU a batch",
        )
    step_s = float(columns.step_s.mean())
    if step_s > 0:
        found[ACCELERATOR] = Ceiling(
            samples / step_s, f"{samples:,.0f} samples / {format_duration(step_s)} a step"
        )
    return dict(sorted(found.items(), key=lambda item: item[1].samples_per_s))


def _made(columns: Columns) -> bool:
    """Whether any batch was seen being made."""
    return bool(np.isfinite(columns.fetch_end_s).any())
