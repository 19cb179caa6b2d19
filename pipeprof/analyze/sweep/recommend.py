"""Recommend a setting for each data set of a sweep: the cheapest that feeds, else the fastest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf

from pipeprof.analyze.profile.stall_attribution import MAIN
from pipeprof.analyze.thresholds import EQUALLY_FAST, MOST_CORES, MOST_GAIN
from pipeprof.analyze.wording.sweep import sweep_headline, tried_setting
from pipeprof.model import PairedRuns, Stage, SweepAdvice, SweepSpec, Trial

_HANDING_OVER = (str(Stage.TRANSFER), MAIN)
"""Bottlenecks whose time does not depend on the size of a batch."""


def choose(
    trials: Sequence[Trial], spec: SweepSpec, paired: Mapping[str, PairedRuns] | None = None
) -> tuple[SweepAdvice, ...]:
    """Return one piece of advice per data set, in the order in which they were first tried.
    ``paired`` has, by URL, the paired runs that decided between the best settings."""
    urls = dict.fromkeys(trial.url for trial in trials)
    return tuple(_advise(url, trials, spec, (paired or {}).get(url)) for url in urls)


def _advise(
    url: str, trials: Sequence[Trial], spec: SweepSpec, pairs: PairedRuns | None
) -> SweepAdvice:
    own = [index for index, trial in enumerate(trials) if trial.url == url]
    best = _best_of_pair(pairs, trials) if pairs else best_trial(trials, own)
    chosen, first = trials[best], trials[own[0]]
    return SweepAdvice(
        url=url,
        format=chosen.format,
        headline=sweep_headline(chosen, first, _needed(chosen, spec.threshold)),
        best_trial=best,
        recommendation=tried_setting(first, chosen, url, spec),
    )


def best_trial(trials: Sequence[Trial], own: Sequence[int]) -> int:
    """Return the cheapest of the equally fast trials among `candidates`, as an index. Equally fast
    is within 3 % of the fastest. Cheap is few workers, then little prefetching."""
    found = candidates(trials, own)
    fastest = max(trials[index].samples_per_s for index in found)
    near = [index for index in found if trials[index].samples_per_s >= fastest * (1 - EQUALLY_FAST)]
    return min(near, key=lambda index: _cost(trials[index]))


def candidates(trials: Sequence[Trial], own: Sequence[int]) -> Sequence[int]:
    """Return those of ``own`` that feed the accelerator, or all of them if none does."""
    return [index for index in own if trials[index].verdict == "fed"] or own


def _best_of_pair(pairs: PairedRuns, trials: Sequence[Trial]) -> int:
    return preferred(pairs, cheaper_of(trials, (pairs.trial, pairs.against)))


def cheaper_of(trials: Sequence[Trial], pair: tuple[int, int]) -> int:
    """Return the trial of the cheaper setting of ``pair``, as an index."""
    return min(pair, key=lambda index: _cost(trials[index])[:2])


def preferred(pairs: PairedRuns, cheaper: int) -> int:
    """Return the trial of the faster setting of a pair, or the ``cheaper`` one if the other is
    faster by less than 3 %. Where chance hides the difference, the mean is the best guess."""
    if abs(pairs.speed - 1) < EQUALLY_FAST:
        return cheaper
    return pairs.trial if pairs.speed > 1 else pairs.against


def is_decided(pairs: PairedRuns, cheaper: int) -> bool:
    """Return whether further pairs are unlikely to change what is preferred: one setting is faster,
    or the other one is certainly faster than the ``cheaper`` by less than 3 %."""
    low, high = pairs.speed_interval
    loss = high if cheaper == pairs.against else 1 / low
    return pairs.difference != "none" or loss < 1 + EQUALLY_FAST


def _cost(trial: Trial) -> tuple[float, ...]:
    config = trial.config
    return (config.num_workers, config.prefetch_factor or 0, -trial.samples_per_s)


def _needed(trial: Trial, threshold: float) -> dict[str, object]:
    """Return the cores and the storage bandwidth that would feed the accelerator. They are its
    demand, less the tolerated starved share, times the CPU time and the bytes of a sample."""
    demand = trial.demand_samples_per_s or inf
    rate = (1 - threshold) * demand if demand <= MOST_GAIN * trial.samples_per_s else 0.0
    cores, read = rate * (trial.cpu_s_per_sample or 0.0), rate * (trial.bytes_per_sample or 0.0)
    handing_over = trial.config.num_workers and trial.bottleneck in _HANDING_OVER
    return {
        "cores": cores if 0 < cores <= MOST_CORES else None,
        "read": read or None,
        "larger_batches": bool(rate and handing_over),
    }
