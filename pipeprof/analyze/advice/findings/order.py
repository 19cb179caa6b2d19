"""Findings about batches, or workers, that are slower than the others."""

from __future__ import annotations

import numpy as np

from pipeprof.analyze.advice.findings.case import case
from pipeprof.analyze.advice.metrics import Facts
from pipeprof.analyze.advice.proposal import Figures
from pipeprof.analyze.advice.roofline_estimate import absorbing_prefetch, most_prefetch
from pipeprof.analyze.profile.histogram import Sketch
from pipeprof.analyze.thresholds import TO_BLAME
from pipeprof.model import Stage

_MOST_SLOW_SHARE = 0.2
"""Largest share of slow batches; with more of them they are not the exception."""
_SLOWER = 1.2
"""Fetch time of a slow worker relative to the median of the others."""
_LEAST_STANDARD_ERRORS = 4.0
"""Standard errors by which a slow worker must differ from the others."""
_LEAST_BATCHES = 30
"""Batches of a worker that are needed to compare it with others."""
_MOST_PREFETCH = 64
"""Largest prefetch factor to propose."""


def stalled_by_slow_batches(facts: Facts) -> bool:
    """Return whether the accelerator mostly waits for a few slow batches."""
    sums = facts.summary.sums
    few = sums["slow"] >= 3 and facts.slow_share <= _MOST_SLOW_SHARE
    return (
        facts.starved and facts.workers > 0 and few
        and not _slow_together(facts)
        and sums["slow_stall_s"] >= TO_BLAME * sums["stall_s"]
    )  # fmt: skip


def out_of_order_helps(facts: Facts) -> bool:
    """Return whether ``in_order=False`` is possible (torch 2.6 or later) and not yet set."""
    release = (facts.environment.torch or "0").split(".")[:2]
    new = all(part.isdigit() for part in release) and tuple(map(int, release)) >= (2, 6)
    possible = new and facts.may_set("in_order")
    return possible and facts.config.in_order and facts.workers > 1


def useful_prefetch(facts: Facts) -> int | None:
    """Return the prefetch factor that lasts for one slow batch; ``None`` if none can."""
    if not facts.may_set("prefetch_factor"):
        return None
    wanted = absorbing_prefetch(facts)
    possible = facts.prefetch < wanted <= min(_MOST_PREFETCH, most_prefetch(facts))
    return wanted if possible else None


@case("head-of-line")
def slow_batches(facts: Facts) -> Figures | None:
    """One slow batch delays those behind it.

    Reported when 25 % or more of the stall is waiting for a few batches (at most 20 % of them) that
    took far longer than the median. More workers hardly help.

    Fix: prefetch enough batches to last while a slow one is built, set `in_order=False`, or prepare
    the slow samples before training.
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
    """One worker is slower than the others in most of its batches.

    Reported when its median fetch time is 1.2 times that of the others or more, and the difference
    is significant.

    Fix: divide the data evenly, or look at the core that the worker runs on.
    """
    fetches = {
        number: worker.stages[str(Stage.FETCH)]
        for number, worker in facts.summary.workers.items()
        if number >= 0 and worker.stages[str(Stage.FETCH)].count >= _LEAST_BATCHES
    }
    if not facts.starved or len(fetches) < 2:
        return None
    slowest = max(fetches, key=lambda number: _median(fetches[number]))
    others = [sketch for number, sketch in fetches.items() if number != slowest]
    usual_s = float(np.median([_median(sketch) for sketch in others]))
    own_s = _median(fetches[slowest])
    error_s = float(np.hypot(_error(fetches[slowest]), max(map(_error, others))))
    if not usual_s or own_s < _SLOWER * usual_s:
        return None
    if not own_s - usual_s >= _LEAST_STANDARD_ERRORS * error_s:
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
    """Return the standard error of the median, as if the middle two thirds were normal."""
    low, high = sketch.quantiles(0.16, 0.84)
    return 1.25 * (high - low) / 2 / float(np.sqrt(sketch.count))


def _slow_together(facts: Facts) -> bool:
    """Return whether workers are slow at the same time, so that none can overtake another.

    Take the time in which another worker builds a slow batch, and the share of slow batches in it.
    If workers are slow independently, it is the usual share; if all are slow at once, it is 1. The
    result is true where it is nearer to 1.
    """
    sums, made = facts.summary.sums, facts.summary.made
    if not sums["concurrent_s"] or not made.total:
        return False
    usual = sums["slow_s"] / made.total
    return sums["concurrent_slow_s"] / sums["concurrent_s"] > (1 + usual) / 2
