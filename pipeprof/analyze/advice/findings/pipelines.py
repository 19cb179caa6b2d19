"""Findings about loaders that work in threads: torchdata.nodes, Grain, SPDL, Ray Data."""

from __future__ import annotations

from pipeprof.analyze.advice.findings.case import case
from pipeprof.analyze.advice.metrics import Facts
from pipeprof.analyze.advice.pipeline import more_threads, stage_figures
from pipeprof.analyze.advice.proposal import Figures


@case("pipeline-stage-bound")
def stage_bound(facts: Facts) -> Figures | None:
    """One stage of the loader's pipeline limits all others.

    Reported when the threads of a stage are busy 85 % of the time or more, or when the library says
    that the training loop waited mostly for it.

    Fix: work on more items of this stage at once, where it waits. Where it computes in Python,
    threads take turns, and only processes or cheaper work help.
    """
    bound = facts.summary.charges.busiest
    if bound is None or not facts.starved:
        return None
    more = more_threads(facts)
    gain = None if more is None or more.wanted <= bound.slots else more.times - 1
    return {**stage_figures(facts, bound), "gain": gain if gain and gain >= 0.1 else None}
