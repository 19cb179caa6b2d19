"""Simulate a grid of workers and prefetching from one run, for settings that are tried afterwards.

Advice that nobody tries needs intervals, which take long to simulate. A loader that is tuned tries
what is promising, so a quick rate is enough.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil

from pipeprof.analyze.advice.metrics import Facts
from pipeprof.analyze.advice.more_workers import Simulate
from pipeprof.analyze.advice.roofline_estimate import (
    enough_for_cores,
    fits_memory,
    most_batches,
)
from pipeprof.analyze.predict.workload import Setting

_WORKERS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96)
_PREFETCH = (2, 4, 8)
_BEYOND_CORES = 2
"""Factor for the workers that keep the cores busy. More can help where batches vary."""


def simulated_rates(facts: Facts, simulate: Simulate) -> dict[Setting, float]:
    """Return batches/s of other settings, by simulation.

    They keep to the cores of this rank, and to the limits of shared memory and descriptors. Their
    workers fit into the memory that is left while those of the run still exist.
    Empty where the accelerator is fed, or where the run cannot be simulated.
    """
    if not (facts.starved and facts.made_s > 0) or facts.limited or (run := simulate()) is None:
        return {}
    simulated_s = run.quick_rate(Setting(facts.workers, facts.prefetch, facts.config.in_order))
    scale = facts.rate / facts.samples / simulated_s
    return {each: scale * run.quick_rate(each) for each in _grid(facts)}


def _grid(facts: Facts) -> Iterator[Setting]:
    cores = ceil(facts.cores / facts.environment.ranks)
    most = min(8 * cores, _BEYOND_CORES * max(cores, enough_for_cores(facts)))
    own = Setting(facts.workers, facts.prefetch, facts.config.in_order)
    for workers in sorted({*_WORKERS, facts.workers}):
        for prefetch in sorted({*_PREFETCH, facts.prefetch}):
            fits = workers <= most and workers * prefetch <= most_batches(facts)
            fits = fits and fits_memory(facts, workers, prefetch)
            if workers and fits and (workers, prefetch) != (own.num_workers, own.prefetch_factor):
                yield Setting(workers, prefetch, own.in_order)
