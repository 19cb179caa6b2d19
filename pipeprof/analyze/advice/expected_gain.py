"""What to expect of more workers: with an interval, at what cost, and what would settle it."""

from __future__ import annotations

from dataclasses import replace
from math import isnan

from pipeprof.analyze.advice import roofline_estimate
from pipeprof.analyze.advice.metrics import Facts
from pipeprof.analyze.profile.storage_bottleneck import BANDWIDTH
from pipeprof.analyze.thresholds import LEAST_BATCHES_TO_SIMULATE
from pipeprof.model import Cost, Recommendation
from pipeprof.units import capital, counted

_WIDE = 0.3
"""Relatively: so wide an interval is told as a range, if one more run would narrow it."""
_ROOFLINE = "Estimated from this run alone, not tried"
_SIMULATED = "Simulated with this run's batches, not tried"
_DOUBT = "More workers bring nothing if all of them together fill the storage's bandwidth"


def expected(facts: Facts, advice: Recommendation, workers: int) -> Recommendation:
    """``advice`` to set so many workers, with what that would bring."""
    if facts.one_run is None:
        return _by_roofline(facts, advice, workers)
    told, more = facts.one_run.predict(workers), roofline_estimate.slow_ones_wanted(facts)
    low, high = (facts.samples * rate for rate in told.interval)
    fills = bool(told.settle) and facts.one_run.shares
    alone = not facts.diagnosis.has_step  # then nothing is starved
    doubt = fills or (bool(told.settle) and told.half_width > _WIDE)
    open_ = _DOUBT if fills else capital(told.why)
    if more:
        why = (
            f"{advice.why}. Too few slow batches were seen to say how much it brings: run "
            f"{counted(more, 'more batch')} for that. Not tried"
        )
        return replace(advice, why=why, cost=_cost(facts, workers, None))
    samples_per_s = facts.samples * told.batches_per_s
    return replace(
        advice,
        why=". ".join(filter(None, (advice.why, _SIMULATED, open_))),
        predicted_samples_per_s=None if doubt else samples_per_s,
        interval=(low, high),
        predicted_starved=None if doubt or alone else told.starved_fraction,
        predicted_starved_interval=None if alone else told.starved_interval,
        cost=_cost(facts, workers, None if doubt else samples_per_s),
        settle=f"{told.settle}: pipeprof run --set num_workers={workers} train.py"
        if told.settle else None,
    )  # fmt: skip


def _by_roofline(facts: Facts, advice: Recommendation, workers: int) -> Recommendation:
    """Without batches to simulate."""
    full = facts.diagnosis.bottleneck == BANDWIDTH
    samples_per_s = None if full else roofline_estimate.rate(facts, workers)
    few = max(0, LEAST_BATCHES_TO_SIMULATE - facts.summary.measured)
    longer = f". {counted(few, 'more batch')} would be enough for an interval" if few else ""
    return replace(
        advice,
        why=f"{advice.why}. {_ROOFLINE}{longer}{f'. {_DOUBT}' if full else ''}",
        predicted_samples_per_s=samples_per_s,
        cost=_cost(facts, workers, samples_per_s),
    )


def _cost(facts: Facts, workers: int, samples_per_s: float | None) -> Cost:
    """Beyond what the run took."""
    more, gauges = workers - facts.workers, facts.summary.gauges
    cores = None
    if samples_per_s is not None and not isnan(facts.cpu_s):
        cores = max(0.0, (samples_per_s - facts.rate) / facts.samples * facts.cpu_s)
    under_way = more * facts.prefetch * facts.batch_bytes
    own = gauges["private_bytes"].mean if facts.workers else float("nan")
    ram = more * own + (0.0 if isnan(under_way) else under_way)
    return Cost(cores, _known(ram), _known(under_way))


def _known(figure: float) -> float | None:
    return None if isnan(figure) else figure
