"""Batches, or workers, that are slower than the others."""

from __future__ import annotations

import numpy as np

from pipeprof.analyze.advice.findings.case import case
from pipeprof.analyze.advice.metrics import Facts
from pipeprof.analyze.advice.proposal import Figures
from pipeprof.analyze.advice.roofline_estimate import absorbing_prefetch, most_prefetch
from pipeprof.analyze.profile.histogram import Sketch
from pipeprof.analyze.thresholds import TO_BLAME
from pipeprof.model import Stage

_FEW = 0.2
"""Of the batches: more of them are not the exception."""
_SLOWER = 1.2
"""Than the median worker."""
_SURE = 4.0
"""Standard errors."""
_ENOUGH = 30
"""Batches of a worker, to judge it by."""
_MOST_PREFETCH = 64


def stalled_by_slow_batches(facts: Facts) -> bool:
    """Whether a few slow batches are what the accelerator waits for."""
    sums = facts.summary.sums
    return (
        facts.starved and facts.workers > 0 and sums["slow"] >= 3 and facts.slow_share <= _FEW
        and not facts.slow_together
        and sums["slow_stall_s"] >= TO_BLAME * sums["stall_s"]
    )  # fmt: skip


def out_of_order_helps(facts: Facts) -> bool:
    """The option came with torch 2.6."""
    release = (facts.environment.torch or "0").split(".")[:2]
    new = all(part.isdigit() for part in release) and tuple(map(int, release)) >= (2, 6)
    return new and facts.config.in_order and facts.workers > 1


def useful_prefetch(facts: Facts) -> int | None:
    """The prefetch factor that rides out a slow batch; ``None`` when none that is possible does."""
    wanted = absorbing_prefetch(facts)
    possible = facts.prefetch < wanted <= min(_MOST_PREFETCH, most_prefetch(facts))
    return wanted if possible else None


@case("head-of-line")
def slow_batches(facts: Facts) -> Figures | None:
    """One slow batch holds up those behind it.

    Seen by the stall: a quarter or more of it is waiting for a few batches (a fifth of them at the
    most) that took far longer than the median. More workers hardly help. Cured by a prefetch that
    outlasts a slow one, by `in_order=False`, or by making the slow samples ahead of training.
    """
    if not stalled_by_slow_batches(facts):
        return None
    sums = facts.summary.sums
    return {
        "slow": sums["slow"],
        "usual_s": facts.summary.made.quantiles(0.5)[0],
        "share": sums["slow_stall_s"] / sums["stall_s"],
        "may_pass": out_of_order_helps(facts),
        "wanted_prefetch": useful_prefetch(facts),
    }


@case("uneven-workers")
def uneven_workers(facts: Facts) -> Figures | None:
    """One worker is slower than the others, in most of its batches.

    Seen by its median time to fetch, 1.2 times that of the others and beyond chance. Cured by
    dividing the data evenly, or by looking at the core that it runs on.
    """
    fetches = {
        number: worker.stages[str(Stage.FETCH)]
        for number, worker in facts.summary.workers.items()
        if number >= 0 and worker.stages[str(Stage.FETCH)].count >= _ENOUGH
    }
    if not facts.starved or len(fetches) < 2:
        return None
    slowest = max(fetches, key=lambda number: _median(fetches[number]))
    others = [sketch for number, sketch in fetches.items() if number != slowest]
    usual_s = float(np.median([_median(sketch) for sketch in others]))
    own_s = _median(fetches[slowest])
    error_s = float(np.hypot(_error(fetches[slowest]), max(map(_error, others))))
    longer_s = own_s - usual_s
    if not usual_s or own_s < _SLOWER * usual_s or not longer_s >= _SURE * error_s:
        return None
    return {
        "slowest": slowest,
        "own_s": own_s,
        "usual_s": usual_s,
        "batches": fetches[slowest].count,
        "times": own_s / usual_s,
        "iterable": facts.config.kind == "iterable",
        "may_pass": out_of_order_helps(facts),
    }


def _median(sketch: Sketch) -> float:
    return sketch.quantiles(0.5)[0]


def _error(sketch: Sketch) -> float:
    """Of the median, as if the middle two thirds were normal."""
    low, high = sketch.quantiles(0.16, 0.84)
    return 1.25 * (high - low) / 2 / float(np.sqrt(sketch.count))
