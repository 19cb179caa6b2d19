"""Simulate a grid of workers and prefetching from one run, for settings that are tried afterwards.

Advice that nobody tries needs intervals, which take long to simulate. A loader that is tuned tries
what is promising, so a quick rate is enough.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
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
_DEEPER = 2
"""So many numbers of workers, the fastest, are simulated with more prefetched batches, too."""
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
    own = facts.setting
    simulated = run.quick_rate(own)
    scale = facts.rate / facts.samples / simulated
    rates = {each: scale * run.quick_rate(each) for each in _workers(facts, own)}
    best = sorted(rates, key=lambda each: -rates[each])[:_DEEPER] or [own]
    for each in {setting.num_workers for setting in best} | {facts.workers} - {0}:
        for prefetch in _PREFETCH:
            setting = replace(own, num_workers=each, prefetch_factor=prefetch)
            if setting not in rates and setting != own and _fits(facts, setting):
                rates[setting] = scale * run.quick_rate(setting)
    return rates


def _workers(facts: Facts, own: Setting) -> Iterator[Setting]:
    """Yield other numbers of workers that the machine has room for."""
    cores = ceil(facts.cores / facts.environment.ranks)
    most = min(8 * cores, _BEYOND_CORES * max(cores, enough_for_cores(facts)))
    for workers in sorted({*_WORKERS, 2 * facts.workers, facts.workers // 2} - {0}):
        setting = replace(own, num_workers=workers, prefetch_factor=_PREFETCH[0])
        if workers <= most and setting != own and _fits(facts, setting):
            yield setting


def _fits(facts: Facts, setting: Setting) -> bool:
    fits = fits_memory(facts, setting.num_workers, setting.prefetch_factor)
    return fits and setting.in_flight <= most_batches(facts)
