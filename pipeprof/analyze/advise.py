"""What to change, from one run: how many workers, and when workers are not the answer.

The estimate is the roofline's: W workers give W / (time to make a batch), until the cores or the
accelerator say no. It is marked as an estimate; `pipeprof sweep` measures.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from pipeprof.analyze.ceilings import ACCELERATOR, WORKER_CPU, WORKERS
from pipeprof.model import Ceiling, Diagnosis, Environment, LoaderConfig, Recommendation
from pipeprof.units import format_count

WORTHWHILE = 1.1
"""Less than a tenth more is not worth another worker."""


def advise(
    diagnosis: Diagnosis,
    roof: Mapping[str, Ceiling],
    config: LoaderConfig,
    environment: Environment,
) -> tuple[Recommendation, ...]:
    """Empty when nothing needs to change, or nothing is known."""
    if diagnosis.verdict != "starved" or not {WORKERS, ACCELERATOR} <= set(roof):
        return ()
    makers = max(1, config.num_workers)
    per_worker = roof[WORKERS].samples_per_s / makers
    demand = roof[ACCELERATOR].samples_per_s
    cores = roof[WORKER_CPU].samples_per_s if WORKER_CPU in roof else math.inf
    # loading and training share a process without workers; one worker already parts them
    # a little above the demand: equal rates would leave the accelerator waiting now and then
    target = min(demand * (1 + diagnosis.threshold), cores)
    wanted = min(math.ceil(target / per_worker - 1e-9), 8 * environment.cores)
    gain = min(demand, cores) / roof[WORKERS].samples_per_s
    if wanted <= config.num_workers or (config.num_workers and gain < WORTHWHILE):
        return (_not_workers(config, roof, diagnosis),)
    predicted = min(wanted * per_worker, cores, demand)
    limit = "the accelerator" if cores >= demand else f"{environment.cores} cores"
    prefetch = config.prefetch_factor or 2
    return (
        Recommendation(
            setting="num_workers",
            current=str(config.num_workers),
            proposed=str(wanted),
            why=f"one worker makes {format_count(per_worker)} samples/s here, the accelerator "
            f"takes {format_count(demand)}; then {limit} would be the limit. Estimated from "
            "this run alone, not tried",
            predicted_samples_per_s=predicted,
            code=f"DataLoader(…, num_workers={wanted}, prefetch_factor={prefetch}, "
            "persistent_workers=True)",
        ),
    )


def _not_workers(
    config: LoaderConfig, roof: Mapping[str, Ceiling], diagnosis: Diagnosis
) -> Recommendation:
    name, ceiling = next(iter(roof.items()))
    return Recommendation(
        setting=diagnosis.bottleneck or "the data path",
        current=f"num_workers={config.num_workers}",
        proposed="a cheaper way to make a batch, not more workers",
        why=f"the lowest ceiling is {name} at {format_count(ceiling.samples_per_s)} samples/s "
        f"({ceiling.formula}); more workers do not raise it",
    )
