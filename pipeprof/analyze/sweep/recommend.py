"""What a sweep says of each data set: the cheapest setting that feeds, else the fastest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf

from pipeprof.analyze.profile.stall_attribution import MAIN
from pipeprof.analyze.thresholds import EQUALLY_FAST, MOST_CORES, MOST_GAIN
from pipeprof.analyze.wording.sweep import sweep_headline, tried_setting
from pipeprof.model import PairedRuns, Stage, SweepAdvice, SweepSpec, Trial

_HANDING_OVER = (str(Stage.TRANSFER), MAIN)
"""To blame where a batch takes as long whatever is in it: neither cores nor storage are short."""


def choose(
    trials: Sequence[Trial], spec: SweepSpec, paired: Mapping[str, PairedRuns] | None = None
) -> tuple[SweepAdvice, ...]:
    """One piece of advice per data set, in the order in which they were first tried. ``paired``:
    URL → the runs in pairs that settled what the trials left in doubt."""
    urls = dict.fromkeys(trial.url for trial in trials)
    return tuple(_advise(url, trials, spec, (paired or {}).get(url)) for url in urls)


def _advise(
    url: str, trials: Sequence[Trial], spec: SweepSpec, pairs: PairedRuns | None
) -> SweepAdvice:
    own = [index for index, trial in enumerate(trials) if trial.url == url]
    best = _borne_out(pairs, trials) if pairs else best_trial(trials, own)
    chosen, first = trials[best], trials[own[0]]
    return SweepAdvice(
        url=url,
        format=chosen.format,
        headline=sweep_headline(chosen, first, _needed(chosen, spec.threshold)),
        best_trial=best,
        recommendation=tried_setting(first, chosen, url, spec),
    )


def best_trial(trials: Sequence[Trial], own: Sequence[int]) -> int:
    """Of those that feed the accelerator the cheapest; if none does, the cheapest of those within
    3 % of the fastest. Cheap is few workers, then little prefetching."""
    found = candidates(trials, own)
    fastest = max(trials[index].samples_per_s for index in found)
    near = [index for index in found if trials[index].samples_per_s >= fastest * (1 - EQUALLY_FAST)]
    return min(near, key=lambda index: _cost(trials[index]))


def candidates(trials: Sequence[Trial], own: Sequence[int]) -> Sequence[int]:
    """Those of ``own`` that feed the accelerator, or all of them if none does."""
    return [index for index in own if trials[index].verdict == "fed"] or own


def _borne_out(pairs: PairedRuns, trials: Sequence[Trial]) -> int:
    """The faster of the two; the cheaper, where they do not differ."""
    if pairs.difference == "none":
        return min((pairs.trial, pairs.against), key=lambda index: _cost(trials[index])[:2])
    return pairs.trial if pairs.difference == "faster" else pairs.against


def _cost(trial: Trial) -> tuple[float, ...]:
    config = trial.config
    return (config.num_workers, config.prefetch_factor or 0, -trial.samples_per_s)


def _needed(trial: Trial, threshold: float) -> dict[str, object]:
    """What would feed: (1 - the tolerated starved share) × the samples/s that the accelerator could
    take, × what each sample takes of cores and of storage."""
    demand = trial.demand_samples_per_s or inf
    rate = (1 - threshold) * demand if demand <= MOST_GAIN * trial.samples_per_s else 0.0
    cores, read = rate * (trial.cpu_s_per_sample or 0.0), rate * (trial.bytes_per_sample or 0.0)
    handing_over = trial.config.num_workers and trial.bottleneck in _HANDING_OVER
    return {
        "cores": cores if 0 < cores <= MOST_CORES else None,
        "read": read or None,
        "larger_batches": bool(rate and handing_over),
    }
